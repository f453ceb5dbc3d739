import 'reflect-metadata';
import { spawn } from 'node:child_process';
import type { StoredLock } from '../../lib/core/seam/lock-store';
import { LockConfigurationError, LockStoreError } from '../../lib/core/words/errors';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { searchAll } from '../../lib/quorum/searching';
import { RedisKeys } from '../../lib/redis/scripts/redis-keys';
import { acquired, newHold } from '../support/quorum-stores';
import { RedisServer } from '../support/redis-server';
import { RedisQuorum } from '../support/redis-quorum';
import { saying } from '../support/saying';
import { goOn, stopProcess } from '../support/stopping';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

const LONGEST_MS = 2_000;

let quorum: RedisQuorum;
let warnings: string[];
let closing: { close(): Promise<void> }[];
/** They run for long when the tests that need them begin. */
let spares: RedisServer[];
beforeAll(async () => {
  spares = await Promise.all(Array.from({ length: 4 }, () => RedisServer.start()));
});
afterAll(() => Promise.all(spares.map((spare) => spare.stop())));
beforeEach(async () => {
  [warnings, closing] = [[], []];
  quorum = await RedisQuorum.start(3);
});
afterEach(async () => {
  await Promise.all(closing.map((each) => each.close()));
  await quorum.stop();
});

async function open(urls: readonly string[], longestLease = LONGEST_MS): Promise<QuorumLockStore> {
  const store = new QuorumLockStore(urls, { longestLease });
  closing.push(store);
  await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  return store;
}

/** A server that has run for long, and was never in the quorum. */
async function takeSpare(): Promise<RedisServer> {
  const spare = spares.pop() as RedisServer;
  closing.push({ close: () => spare.stop() });
  await until(
    'a long run',
    async () => Number(/uptime_in_seconds:(\d+)/.exec(await spare.client.info('server'))?.[1]) * 1_000 > LONGEST_MS + 1_000,
  );
  return spare;
}

/** Whether a store gets a lock before `endsAt`. A grant that comes later says nothing. */
async function gets(store: QuorumLockStore, key: string, endsAt: number, ttlMs = LONGEST_MS): Promise<boolean> {
  while (performance.now() < endsAt) {
    if ((await store.acquire(newHold(key, ttlMs)).catch(() => undefined))?.fence !== undefined) {
      return performance.now() < endsAt;
    }
  }
  return false;
}

/** Has a store get a lock, however long its servers stand still; when it asked for what it was granted. */
async function take(store: QuorumLockStore, key: string): Promise<number> {
  let sentAt = 0;
  await until('the lock', async () => {
    sentAt = performance.now();
    return acquired(store, key, LONGEST_MS).then(
      () => true,
      () => false,
    );
  });
  return sentAt;
}

test('a process with another longest lease waits for the longer one, and warns of it', async () => {
  const holder = await open(quorum.proxied);
  quorum.proxy(2).mode = 'refuse';
  const hasty = await open(quorum.urls, 200);
  await until('the warning', () =>
    warnings.some((message) => /with longestLease 2000 ms, and this one has 200 ms\. Set the same/.test(message)),
  );
  const sentAt = await take(holder, 'k');
  await quorum.at(1).kill();
  await quorum.at(1).start();
  expect(await gets(hasty, 'k', sentAt + LONGEST_MS * 0.99 - 50, 200)).toBe(false);
});

test('a list with more servers, or with fewer, is refused while processes have the other one', async () => {
  const more = await Promise.all([RedisServer.start(), RedisServer.start()]);
  more.forEach((server) => closing.push({ close: () => server.stop() }));
  const urls = [...quorum.urls, ...more.map(({ url }) => url)];
  const holder = await open(quorum.urls);
  const error = await open(urls).catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect(String(error)).toMatch(/was given 5 servers, and other processes use some of them in a quorum of 3\. .* wait for 6000 ms\./);
  await holder.close();
  await until('the start', () =>
    open(urls).then(
      () => true,
      () => false,
    ),
  );
});

test('a process whose list is refused keeps nobody from starting, and is told for how long the other list holds', async () => {
  const more = await Promise.all([RedisServer.start(), RedisServer.start()]);
  more.forEach((server) => closing.push({ close: () => server.stop() }));
  const urls = [...quorum.urls, ...more.map(({ url }) => url)];
  const holder = await open(urls, 120_000);
  for (let time = 0; time < 2; time++) {
    await expect(open(quorum.urls)).rejects.toThrow(saying(/was given 3 servers, and other .* quorum of 5\. .* wait for 242000 ms\./));
  }
  const next = await open(urls, 120_000);
  await acquired(next, 'k');
  await acquired(holder, 'j');
  expect(warnings.filter((message) => !/it (restarted|was first seen) not long ago/.test(message))).toEqual([]);
});

test('a process that only looks changes nothing for the others, and sees who votes', async () => {
  const store = await open(quorum.urls);
  const fresh = await RedisQuorum.startNew(3);
  closing.push({ close: () => fresh.stop() });
  for (const [urls, longestMs] of [
    [quorum.urls, 60_000],
    [fresh.urls, LONGEST_MS],
  ] as const) {
    const looking = new QuorumLockStore(urls, { longestLease: longestMs });
    closing.push(looking);
    await looking.open({ prefix: 'lock', readOnly: true, warn: (message) => warnings.push(message) });
    expect((await looking.health()).members).toEqual(Array.from({ length: 3 }, () => ({ reachable: true, voting: true })));
  }
  const knownOf = ({ client }: RedisServer): Promise<string[]> => client.hkeys('lock:run:{0}');
  expect((await Promise.all(quorum.servers.map(knownOf))).flat()).not.toContain('lease:60000');
  expect((await Promise.all(fresh.servers.map(knownOf))).flat().filter((field) => field === 'counts' || field.includes(':'))).toEqual([]);
  await acquired(store, 'k');
  expect(warnings).toEqual([]);
});

test('a list with fewer servers has no votes where its servers are there only after the start, and warns of it', async () => {
  const more = await Promise.all([RedisServer.start(), RedisServer.start()]);
  more.forEach((server) => closing.push({ close: () => server.stop() }));
  const holder = await open([...quorum.urls, ...more.map(({ url }) => url)]);
  quorum.proxies.forEach((proxy) => (proxy.mode = 'refuse'));
  const other = await open(quorum.proxied);
  quorum.proxies.forEach((proxy) => (proxy.mode = 'pass'));
  await until('the warning', () =>
    warnings.some((message) => /was given 3 servers, and other processes use some of them in a quorum of 5\./.test(message)),
  );
  await until('its servers', async () => (await other.health()).members?.every(({ reachable }) => reachable) === true);
  expect((await other.health()).members?.some(({ voting }) => voting)).toBe(false);
  await expect(other.acquire(newHold('k'))).rejects.toThrow(saying(/ of 3 .*: QuorumLockStore was given 3 servers, and other/));
  await holder.close();
  await until('the votes', () => gets(other, 'k', performance.now() + 5_000));
});

test('a server that is given by two addresses has no votes where the second one is there only after the start', async () => {
  const [first, again, second] = [quorum.urls[0] as string, await TcpProxy.start(quorum.at(0).port), quorum.urls[2] as string];
  closing.push({ close: () => again.stop() });
  again.mode = 'refuse';
  const store = await open([first, again.url, second]);
  await acquired(store, 'before');
  again.mode = 'pass';
  await until('the warning', () => warnings.some((message) => /server 1 of 3 .* and server 2 of 3 .* are the same\./.test(message)));
  // Those of the others do not either, though a majority of them is there.
  await expect(store.acquire(newHold('k'))).rejects.toThrow(saying(/are the same/));
  await quorum.at(2).kill();
  await expect(store.acquire(newHold('k'))).rejects.toThrow(saying(/are the same/));
});

test('a server in whose place another one came is left out for the longest lease, however long that one has run', async () => {
  const [spare, link] = [await takeSpare(), await TcpProxy.start(quorum.at(1).port)];
  closing.push({ close: () => link.stop() });
  const [a, , c] = quorum.urls as [string, string, string];
  const holder = await open([a, link.url, quorum.proxy(2).url]);
  quorum.proxy(2).mode = 'refuse';
  const sentAt = await take(holder, 'k');
  link.target = spare.port;
  link.cut();
  // It reaches the two of which one never voted, and the other took the place of one that did.
  await quorum.at(0).kill();
  const other = await open([a, link.url, c]);
  expect(await gets(other, 'k', sentAt + LONGEST_MS * 0.99 - 50)).toBe(false);
  await until('the grant', () => gets(other, 'k', performance.now() + 5_000));
});

test('what a process reports of itself holds for longer than until its next report, however short its leases are', async () => {
  await open(quorum.urls, 100);
  const { client } = quorum.at(0);
  await until('all servers in a report', async () => {
    const { read, ...fields } = await client.hgetall('lock:run:{0}');
    const said = Object.entries(fields).filter(([name]) => /^(servers|lease|vote):/.test(name));
    // It reports every 250 ms, and may stand still for half a second. Its report about a server holds from the last
    // answer of that server.
    return said.length === 5 && said.every(([, ends]) => Number(ends) - Number(read) >= 750);
  });
});

test('processes that have different servers in their lists never have a lock at once, and warn of it', async () => {
  const spare = await takeSpare();
  const [a, b] = quorum.urls as [string, string];
  const holder = await open(quorum.urls);
  const other = await open([a, b, spare.url]);
  await until('the warning', () => warnings.some((message) => message.includes('other processes have another server in its place')));
  // Now the first needs its own server, which the other does not have.
  const reaches = async (store: QuorumLockStore): Promise<boolean> =>
    (await store.acquire(newHold('j', LONGEST_MS)).catch(() => undefined)) !== undefined;
  await until('a majority', () => reaches(holder));
  await quorum.at(1).kill();
  await take(holder, 'k');
  expect(await reaches(other)).toBe(false);
  // The new list counts when no process has the old one any more.
  await holder.close();
  await until('votes of the new list', () => reaches(other));
});

test('a process with other servers beside one that it shares is told of that, and not of restarts', async () => {
  const more = await Promise.all([RedisServer.start(), RedisServer.start()]);
  more.forEach((server) => closing.push({ close: () => server.stop() }));
  const first = await open(quorum.urls);
  await take(first, 'k');
  const second = await open([quorum.urls[2] as string, ...more.map(({ url }) => url)]);
  const error = await second.acquire(newHold('k', LONGEST_MS)).catch((failure: unknown) => failure);
  const reason =
    'other processes have another server in its place, or had this one before it restarted: its votes count in \\d+ ms unless [^;]*';
  // They answer in any order. The end of the text: all servers run, and can be reached.
  const { detail } = error as LockStoreError;
  expect(detail).toMatch(new RegExp(`server [23] of 3 [^;]*: ${reason}; server [23] of 3 [^;]*: ${reason} by then\\.$`));
  expect(detail).toMatch(/server 2 of 3/);
  expect(detail).toMatch(/server 3 of 3/);
  await until('the warnings', () => [2, 3].every((place) => warnings.some((message) => message.startsWith(`server ${place} of 3 `))));
  expect(warnings.filter((message) => !/: other processes have .*\. Give all processes the same list of servers; /.test(message))).toEqual(
    [],
  );
});

/** Whether a store counts the server at that place of its list. */
const counts = async (store: QuorumLockStore, place: number): Promise<boolean> => (await store.health()).members?.[place]?.voting === true;

test('a server that was replaced while a process was cut off from it does not count for that process again', async () => {
  const spare = await takeSpare();
  const [a, b] = quorum.urls as [string, string];
  const old = await open([a, b, quorum.proxy(2).url]);
  quorum.proxy(2).mode = 'refuse';
  const other = await open([a, b, spare.url]);
  await until('votes of the new server', () => counts(other, 2));
  quorum.proxy(2).mode = 'pass';
  const ofOld = new RegExp(`server 3 of 3 .*:${quorum.proxy(2).port}\\) .*: other processes have another server in its place`);
  await until('the warning', () => warnings.some((message) => ofOld.test(message)));
  // A process that starts with the old list has no use of that server either.
  const late = await open(quorum.urls);
  await take(old, 'j');
  await quorum.at(1).kill();
  await take(other, 'k');
  for (const store of [old, late]) {
    await until('the connections', async () => (await store.health()).members?.filter(({ reachable }) => reachable).length === 2);
    await expect(store.acquire(newHold('l', LONGEST_MS))).rejects.toThrow(saying(/other processes have another server in its place/));
  }
});

test('a process that stood still does not trust what it knew of its servers', async () => {
  const spare = await takeSpare();
  const program = `
    import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
    const store = new QuorumLockStore(${JSON.stringify(quorum.urls)}, { longestLease: ${LONGEST_MS} });
    await store.open({ prefix: 'lock', warn: () => undefined });
    process.stdin.once('data', async () => {
      const hold = { key: 'k', owner: 'o', id: 'h', fences: 1, ttlMs: ${LONGEST_MS}, limitMs: 500, by: 'a process', fence: 0 };
      let granted = false;
      for (const endsAt = performance.now() + 1_000; performance.now() < endsAt && !granted; ) {
        granted = (await store.acquire(hold).catch(() => undefined))?.fence !== undefined;
      }
      console.log(granted ? 'granted' : 'refused');
      process.exit();
    });
    console.log('open');
  `;
  const args = ['--import', './test/support/typescript.mjs', '--input-type=module', '--eval', program];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  closing.push({ close: async () => void child.kill('SIGKILL') });
  let said = '';
  child.stdout.on('data', (data: Buffer) => (said += data.toString()));
  await until('its start', () => said === 'open\n');
  stopProcess(child.pid);
  const other = await open([quorum.proxy(0).url, quorum.urls[1] as string, spare.url]);
  await until('votes of the new server', () => counts(other, 2));
  // The first is free for the process that stands still, and the second one away.
  quorum.proxy(0).mode = 'refuse';
  await take(other, 'k');
  await quorum.at(1).kill();
  child.stdin.write('go');
  goOn(child.pid);
  await until('its answer', () => /granted|refused/.test(said));
  expect(said).toBe('open\nrefused\n');
});

test('a search looks up again, by way of the next server, what could not be looked up', async () => {
  const store = await open(quorum.urls);
  const keys = ['a', 'b', 'c'];
  await Promise.all(keys.map((key) => acquired(store, key)));
  let fails = true;
  const inspect = async (key: string): Promise<StoredLock | null> => {
    if (key === 'b' && fails) {
      fails = false;
      throw new LockStoreError('too few servers answered', key, { unknown: false });
    }
    return store.inspect(key);
  };
  const found: string[] = [];
  for await (const part of searchAll(
    quorum.urls.map((source) => ({ source })),
    new RedisKeys('lock', false),
    '',
    inspect,
  )) {
    found.push(...part.map(({ key }) => key));
  }
  expect(found.toSorted()).toEqual(keys);
});

test('what is sent to all processes comes to those whose locks are in the same databases', async () => {
  const heard: string[] = [];
  const there = quorum.urls.map((url) => `${url}/1`);
  const [here, first, second] = await Promise.all([open(quorum.urls), open(there), open(there)]);
  Object.entries({ here, first, second }).forEach(([name, store]) => store.onMessage((text) => heard.push(`${name} ${text}`)));
  // A subscription takes a moment, and messages to one database come in their order.
  await until('that both hear', async () => {
    await first.send('hello');
    return heard.includes('first hello') && heard.includes('second hello');
  });
  await until('that the other hears itself', async () => {
    await here.send('hello');
    return heard.includes('here hello');
  });
  heard.length = 0;
  await first.send('to them');
  await here.send('to itself');
  await until('all', () => heard.includes('here to itself') && heard.includes('first to them') && heard.includes('second to them'));
  expect(heard.filter((each) => each.includes(' to ')).toSorted()).toEqual(['first to them', 'here to itself', 'second to them']);
});

test('a lock is not renewed by a server whose votes do not count for its holder', async () => {
  const added = await RedisServer.start();
  closing.push({ close: () => added.stop() });
  const before = await open(quorum.urls);
  const after = await open([quorum.urls[0] as string, quorum.proxied[1] as string, added.url]);
  const hold = await acquired(after, 'k', LONGEST_MS);
  await until('the vote of the new server', async () => {
    await after.renew([hold]);
    return (await added.client.hget('lock:lock:{k}', 'fence')) === String(hold.fence);
  });
  // From here on its vote at the second server is not renewed; the other process reaches that server, and the third of
  // its own list.
  quorum.proxy(1).mode = 'refuse';
  let trustedUntil = 0;
  await until('another owner', async () => {
    const sentAt = performance.now();
    const [isHeld] = await after.renew([hold]).catch(() => []);
    trustedUntil = isHeld ? sentAt + LONGEST_MS * 0.99 : trustedUntil;
    return (await before.acquire(newHold('k', LONGEST_MS)).catch(() => undefined))?.fence !== undefined;
  });
  expect(performance.now()).toBeGreaterThan(trustedUntil);
});
