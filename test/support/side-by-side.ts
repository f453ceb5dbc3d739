import { setTimeout as sleep } from 'node:timers/promises';

/** A test that takes longer hangs: it shares the processors with the others. */
const LIMIT_MS = 180_000;

/** How tests run beside each other. */
export interface Beside<Own> {
  /**
   * Makes the things that each test is given for it alone, for one test after the other: a server that all ask at once
   * would be slow for all.
   */
  readonly prepare?: () => Promise<Own>;
  /** How many run at once. Default: 6. */
  readonly atOnce?: number;
}

/**
 * Declares tests that wait most of their time, and wait at the same time. All have run when the first of them is
 * reported: jest's own concurrent tests cannot import a module while another one ends, and a store that connects
 * imports its client. Tests that are to run alone are declared by `test`.
 */
export function sideBySide<Own>({ prepare, atOnce = 6 }: Beside<Own> = {}): (name: string, body: (own: Own) => unknown) => void {
  const bodies: ((own: Own) => unknown)[] = [];
  const results: PromiseSettledResult<unknown>[] = [];
  let next = 0;
  let prepared: Promise<unknown> = Promise.resolve();

  const prepareNext = (): Promise<Own> => {
    const own = prepared.then(prepare) as Promise<Own>;
    prepared = own.catch(() => undefined);
    return own;
  };
  const work = async (): Promise<void> => {
    while (next < bodies.length) {
      const at = next++;
      const isOver = new AbortController();
      const tooLong = sleep(LIMIT_MS, undefined, { signal: isOver.signal }).then(() => {
        throw new Error(`not within ${LIMIT_MS} ms`);
      });
      [results[at]] = await Promise.allSettled([Promise.race([prepareNext().then(bodies[at]), tooLong])]);
      isOver.abort();
      tooLong.catch(() => undefined);
    }
  };
  beforeAll(() => Promise.all(Array.from({ length: atOnce }, work)), 4 * LIMIT_MS);

  return (name, body) => {
    const at = bodies.push(body) - 1;
    test(name, () => {
      const result = results[at];
      if (result?.status !== 'fulfilled') {
        throw result?.reason ?? new Error('it did not run');
      }
    });
  };
}
