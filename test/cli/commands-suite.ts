import 'reflect-metadata';
import type { HoldRecord, LockStore } from '../../lib/core/seam/lock-store';
import { cli, cliUntil, type CliRun } from '../support/cli';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';

/** A store that is open, and the variable by which the program finds it. */
export interface CliStore {
  readonly store: LockStore;
  readonly env: NodeJS.ProcessEnv;
  /** Another store on the same servers, which is open. */
  readonly otherStore: () => Promise<LockStore>;
}

const LEASE_MS = 60_000;

/** Longer than the tests: several programs start, one after the other, while a call waits. */
const WAIT_MS = 300_000;

/** The part of `processes --json` that is about this process. */
interface Listed {
  readonly pid: number;
  readonly held: number;
  readonly waiting: number;
  readonly health?: { readonly status: string };
}

/**
 * The effects of the commands, whichever store has the locks. Where the store carries no messages, processes are not
 * asked.
 */
export function describeCommands(given: () => CliStore, { messages = true } = {}): void {
  const asking = messages ? test : test.skip;

  async function held(key: string, ttlMs = LEASE_MS): Promise<HoldRecord> {
    const hold = newHold(key, { ttlMs, limitMs: 2_500 });
    const { fence } = await given().store.acquire(hold);
    if (fence === undefined) {
      throw new Error(`${key} is busy`);
    }
    return { ...hold, fence };
  }

  function run(...words: string[]): Promise<CliRun> {
    return cli(given().env, words);
  }

  /**
   * Runs the command until processes have said what is looked for: a command waits 300 ms for the answers of processes
   * that it does not know yet.
   */
  function runUntil(isSaid: (out: string) => boolean, ...words: string[]): Promise<CliRun> {
    return cliUntil(given().env, words, ({ out }) => isSaid(out));
  }

  // A prefix without any lock is said to have none.
  beforeAll(() => held('held all the time', WAIT_MS));

  test('inspect shows a lock, and JSON has the same', async () => {
    const { fence } = await held('inspected');
    const [shown, json] = await Promise.all([run('inspect', 'inspected'), run('inspect', 'inspected', '--json')]);
    expect(shown).toMatchObject({ code: 0, err: '' });
    expect(shown.out).toMatch(new RegExp(`^Key +inspected\nHeld by +.+\nSince +.+\nFence +${fence}\nLease left +.+\nHolds +1\n`));
    expect(json).toMatchObject({ code: 0, err: '' });
    expect(JSON.parse(json.out)).toMatchObject({ key: 'inspected', fence, holds: 1, waiters: [], calls: [] });
  });

  test('inspect of a free lock ends with 1', async () => {
    expect(await run('inspect', 'free')).toEqual({ code: 1, out: 'Nobody holds "free".\n', err: '' });
    expect(await run('inspect', 'free', '--json')).toEqual({ code: 1, out: 'null\n', err: '' });
  });

  test('a key cannot move the cursor, or hide what follows', async () => {
    const key = 'a\u001b[2J\u009b2K\r\n\u202e\u{e0067}b';
    await held(key);
    const [shown, json] = await Promise.all([run('inspect', key), run('inspect', key, '--json')]);
    expect(shown.out).toContain(String.raw`Key         a\u001b[2J\u009b2K\u000d\u000a\u202e\u{e0067}b`);
    expect(shown.out + json.out).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
    expect(JSON.parse(json.out)).toMatchObject({ key });
  });

  test('release asks for the key, and releases the lock that was held at the fence', async () => {
    const { fence } = await held('released');
    const words = ['release', 'released', '--fence', String(fence)];
    const refused = await cli(given().env, words, 'other\n');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain(`at fence ${fence}. Its code runs on until it hears of it.`);
    expect(await cli(given().env, words)).toMatchObject({ code: 1, out: '' });
    // Neither the end of the input nor an empty line says why.
    for (const typed of ['released\n', 'released\n \n']) {
      const silent = await cli(given().env, words, typed);
      expect(silent).toMatchObject({ code: 1, out: '' });
      expect(silent.err).toMatch(/Why\? No reason was given\. Nothing was released\.\n$/);
    }
    expect(await given().store.operator?.inspect('released')).toMatchObject({ fence });
    const released = await cli(given().env, words, 'released\nIt hangs.\n');
    expect(released).toMatchObject({ code: 0, out: '"released" was released.\n' });
    expect(released.err).toMatch(/Type the key to release it: Why\? $/);
    expect(await given().store.operator?.inspect('released')).toBeNull();
    expect(await run(...words, '--yes', '--json')).toEqual({
      code: 1,
      out: `${JSON.stringify({ key: 'released', fence, released: false, heldAt: null })}\n`,
      err: '',
    });
  });

  test('release leaves a later owner alone', async () => {
    const first = await held('later');
    await given().store.release(first);
    const { fence } = await held('later');
    const { code, out } = await run('release', 'later', '--fence', String(first.fence), '--yes');
    expect(code).toBe(1);
    expect(out).toContain(`another has it now: fence ${fence}.`);
    expect(await given().store.operator?.inspect('later')).toMatchObject({ fence });
  });

  test('list finds locks of processes that do not answer, also those whose keys begin with a prefix only', async () => {
    const { fence } = await held('listed:1');
    await held('other:1');
    const [all, some, none] = await Promise.all([run('list'), run('list', 'listed:', '--json'), run('list', 'none:')]);
    expect(all).toMatchObject({ code: 0, err: '' });
    expect(all.out).toMatch(/^KEY +HELD BY +MODE +SINCE +FENCE +LEASE LEFT +WAITING +QUEUED +ANSWERS\n/);
    expect(all.out).toMatch(new RegExp(`^listed:1 .* ${fence} .* 0 +0 +no$`, 'm'));
    expect(all.out).toMatch(/^other:1 /m);
    expect(JSON.parse(some.out)).toMatchObject({ key: 'listed:1', fence, waiting: 0, waiters: [], answers: false });
    expect(none).toEqual({ code: 0, out: 'No locks are held.\n', err: '' });
  });

  asking(
    'what an application says is in list, processes, top and inspect',
    async () => {
      const other = await given().otherStore();
      const locks = makeLocks(other);
      const waiter = new AbortController();
      const lock = await locks.acquire('held:by-application', { by: 'Holder.run', ttl: LEASE_MS });
      const waiting = locks.acquire('held:by-application', { by: 'Waiter.run', wait: WAIT_MS, signal: waiter.signal });
      try {
        const runs = await Promise.all([
          runUntil((out) => out.includes('"answers":true') && !out.includes('"waiters":[]'), 'list', 'held:', '--json'),
          runUntil((out) => ownIn(out)?.health?.status === 'up' && ownIn(out)?.waiting === 1, 'processes', '--json'),
          runUntil((out) => out.includes('Holder.run') && out.includes('"waiting":1'), 'top', '--json'),
          runUntil((out) => out.includes('held:by-application'), 'top'),
          runUntil((out) => out.includes('Waiter.run'), 'inspect', 'held:by-application', '--json'),
        ]);
        expect(runs.map(({ code, err }) => ({ code, err }))).toEqual(runs.map(() => ({ code: 0, err: '' })));
        const [listed, processes, top, shown, inspected] = runs.map(({ out }) => out) as [string, string, string, string, string];
        const { fence } = lock;
        expect(JSON.parse(listed)).toMatchObject({
          key: 'held:by-application',
          fence,
          waiting: 1,
          waiters: [expect.any(String)],
          answers: true,
        });
        expect(JSON.parse(processes)).toContainEqual(
          expect.objectContaining({ pid: process.pid, held: 1, waiting: 1, health: expect.objectContaining({ status: 'up' }) }),
        );
        expect(JSON.parse(top)).toMatchObject({
          processes: expect.any(Number),
          oldest: [{ key: 'held:by-application', site: 'Holder.run' }],
          keys: [{ key: 'held:by-application', waiting: 1, queued: null }],
          names: [{ waiting: 1 }],
        });
        expect(shown).toMatch(/^OLDEST LOCKS, 1 to 1 of 1\nKEY .*\nheld:by-application +Holder\.run /m);
        expect(JSON.parse(inspected)).toMatchObject({ fence, calls: [{ site: 'Waiter.run' }] });
      } finally {
        waiter.abort();
        await waiting.catch(() => undefined);
        await lock.release();
        await locks.shutdown();
        await other.close();
      }
    },
    120_000,
  );

  test('the doctor finds nothing wrong', async () => {
    const { code, out, err } = await run('doctor', '--json');
    const findings = JSON.parse(out) as { level: string; subject: string; text: string }[];
    expect(findings.filter(({ level }) => level === 'FAIL')).toEqual([]);
    expect(findings).toContainEqual({ level: 'ok', subject: 'store', text: expect.any(String) });
    expect({ code, err }).toEqual({ code: 0, err: '' });
  });
}

/** This process in a list; a program that runs meanwhile is in it too. */
function ownIn(list: string): Listed | undefined {
  return list === '' ? undefined : (JSON.parse(list) as Listed[]).find(({ pid }) => pid === process.pid);
}
