import { AsyncLocalStorage } from 'node:async_hooks';
import { Batches } from '../../lib/kit/batches';

/** The most requests in a batch. */
const MOST = 16;

/** The batches that were sent. */
let sent: string[][];
let reply: (request: string) => unknown;
let batches: Batches<string>;

beforeEach(() => {
  sent = [];
  reply = (request) => `reply to ${request}`;
  batches = new Batches(async (requests) => {
    sent.push([...requests]);
    return requests.map((request) => reply(request));
  });
});

const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => `${at}`);
const turnEnds = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The outcome of each request by the end of the turn. */
async function outcomesOf(...requests: string[]): Promise<unknown[]> {
  const outcomes: unknown[] = requests.map(() => 'none');
  requests.forEach((request, at) =>
    batches.add(request, {
      answered: (answer) => void (outcomes[at] = ['answered', answer]),
      failed: (error) => void (outcomes[at] = ['failed', error]),
    }),
  );
  await turnEnds();
  return outcomes;
}

describe('the requests of one turn', () => {
  test('are sent together when it ends, in order, and each gets its own reply', async () => {
    const replies = Promise.all([batches.ask('a'), batches.ask('b'), batches.ask('c')]);
    expect(sent).toEqual([]);
    expect(await replies).toEqual(['reply to a', 'reply to b', 'reply to c']);
    expect(sent).toEqual([['a', 'b', 'c']]);
  });

  test('are sent together also where callbacks ask them once a batch was sent', async () => {
    void batches.ask('a');
    process.nextTick(() => void batches.ask('c'));
    void batches.ask('b');
    process.nextTick(() => void batches.ask('d'));
    await turnEnds();
    expect(sent).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  test('are sent without those of the next one', async () => {
    await batches.ask('a');
    await turnEnds();
    await batches.ask('b');
    expect(sent).toEqual([['a'], ['b']]);
  });

  test('that are as many as a batch may have are sent at once, and nothing is sent when the turn ends', async () => {
    const outcomes = outcomesOf(...numbered(MOST));
    expect(sent).toEqual([numbered(MOST)]);
    expect(await outcomes).toEqual(numbered(MOST).map((request) => ['answered', `reply to ${request}`]));
    expect(sent).toHaveLength(1);
  });

  test('that are more go in several batches', async () => {
    await outcomesOf(...numbered(2 * MOST + 3));
    expect(sent.map(({ length }) => length)).toEqual([MOST, MOST, 3]);
    expect(sent.flat()).toEqual(numbered(2 * MOST + 3));
  });

  test('are sent before what is sent next, where that must not come before them', async () => {
    const first = batches.ask('a');
    batches.flush();
    expect(sent).toEqual([['a']]);
    batches.flush();
    expect(await Promise.all([first, batches.ask('b')])).toEqual(['reply to a', 'reply to b']);
    expect(sent).toEqual([['a'], ['b']]);
  });

  test('are sent in the context of none of their callers', async () => {
    const calls = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    reply = () => contexts.push(calls.getStore());
    await calls.run('a call', () => Promise.all([batches.ask('a'), batches.ask('b')]));
    expect(contexts).toEqual([undefined, undefined]);
  });
});

describe('of the requests of a batch', () => {
  const error = new Error('its own');

  test('one that failed fails alone', async () => {
    reply = (request) => (request === 'b' ? error : request);
    expect(await outcomesOf('a', 'b', 'c')).toEqual([
      ['answered', 'a'],
      ['failed', error],
      ['answered', 'c'],
    ]);
  });

  test('one that is answered later keeps no other waiting', async () => {
    let answer = (_: string): void => undefined;
    reply = (request) => (request === 'a' ? new Promise((resolve) => (answer = resolve)) : request);
    const late = batches.ask('a');
    expect(await batches.ask('b')).toBe('b');
    answer('at last');
    expect(await late).toBe('at last');
  });

  test('one that fails later fails alone', async () => {
    reply = (request) => (request === 'a' ? Promise.reject(error) : Promise.resolve(request));
    expect(await outcomesOf('a', 'b')).toEqual([
      ['failed', error],
      ['answered', 'b'],
    ]);
  });

  test('one whose answer comes later, and is an error, fails alone', async () => {
    reply = (request) => (request === 'b' ? Promise.resolve(error) : request);
    expect(await outcomesOf('a', 'b')).toEqual([
      ['answered', 'a'],
      ['failed', error],
    ]);
  });

  test('all fail where none of them was answered', async () => {
    batches = new Batches(() => Promise.reject(error));
    expect(await outcomesOf('a', 'b')).toEqual([
      ['failed', error],
      ['failed', error],
    ]);
    await expect(batches.ask('c')).rejects.toBe(error);
  });
});
