import type { ListedLock } from '../../../lib/operate/peers/lock-list';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { playTime } from '../../support/virtual-time';

playTime();

/** How long a survey lasts where all answer at once, and where one process is silent, in milliseconds. */
const SURVEYS_MS = { 'all answer': 300, 'one is silent': 1_000 };

describe.each(Object.entries(SURVEYS_MS))('a survey in which %s', (case_, lastsMs) => {
  /** Two processes of one store, and one that has answered once and answers no more. */
  async function processes() {
    const store = new MemoryLockStore();
    const [mine, theirs] = [makeLocks(store), makeLocks(store)];
    if (case_ === 'one is silent') {
      const silent = makeLocks(store);
      await mine.operations.processes();
      const { messages } = store;
      const own = await silent.operations.survey({});
      const [{ id }] = own.processes as unknown as [{ id: string }];
      const send = messages.send.bind(messages);
      messages.send = async (text, process) => (text.includes('"answer"') && text.includes(id) ? undefined : send(text, process));
    }
    return { mine, theirs };
  }

  test('is as it was when the processes were asked, and the list as it is', async () => {
    const { mine, theirs } = await processes();
    const acquiredAt = Date.now();
    const lock = await theirs.acquire('k', { ttl: 60_000, renew: false });
    const waiting = theirs.acquire('k', { wait: 90_000 });
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const survey = await mine.operations.survey({});
    expect(Date.now() - acquiredAt).toBe(5_000 + lastsMs);
    expect(survey.held).toMatchObject([{ key: 'k', heldMs: 5_000 }]);
    expect(survey.waiting).toMatchObject([{ key: 'k', waitedMs: 5_000, leftMs: 85_000 }]);
    const listed: ListedLock[] = [];
    for await (const one of mine.operations.list()) {
      listed.push(one);
    }
    expect(listed).toMatchObject([{ key: 'k', waiting: 1, waitingHere: 0, remainingMs: Math.round(lock.remainingMs()) }]);
    expect(listed[0]?.since.getTime()).toBe(acquiredAt);
    await lock.release();
    await (await waiting).release();
  });
});
