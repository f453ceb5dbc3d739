import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let server: RedisServer;
let proxy: TcpProxy;
let child: ChildProcess;

beforeEach(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
});
afterEach(async () => {
  child.kill('SIGKILL');
  await proxy.stop();
  await server.stop();
});

test('a process that dies of any unhandled rejection outlives a mix of all faults, and ends by SIGTERM', async () => {
  child = fork('test/fixtures/strict-worker.mjs', [proxy.url], {
    execArgv: ['--unhandled-rejections=strict', '--disable-warning=LockWarning'],
    silent: true,
  });
  let said = '';
  child.stderr?.on('data', (data: Buffer) => (said += data.toString()));
  let ended = '';
  child.on('exit', (code, signal) => (ended = signal ?? `code ${code}`));
  const exited = once(child, 'exit');
  await once(child, 'message');

  const pass = (): void => {
    proxy.mode = 'pass';
    if (proxy.latencyMs > 0) {
      // A later reply must not overtake one that is still on its way.
      proxy.cut();
      proxy.latencyMs = 0;
    }
  };
  const outcomes = async (): Promise<Record<string, number>> => {
    const answer = once(child, 'message');
    child.send('outcomes');
    return ((await answer) as [Record<string, number>])[0];
  };
  const faults: (() => Promise<unknown> | void)[] = [
    () => void (proxy.mode = 'killOnReply'),
    () => void (proxy.mode = 'dropReplies'),
    () => void (proxy.mode = 'blackhole'),
    () => void (proxy.mode = 'muteSubscribers'),
    () => void (proxy.latencyMs = 200),
    () => proxy.cut(),
    () => server.client.flushall(),
    () => server.client.script('FLUSH'),
    () => server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    () =>
      server.client
        .config('SET', 'maxmemory', '1')
        .then(() => sleep(400))
        .then(() => server.client.config('SET', 'maxmemory', '0')),
    () =>
      server.client
        .acl('SETUSER', 'default', '-evalsha', '-eval', '-publish')
        // A process that stands still meanwhile would not feel it.
        .then(() => until('that it is felt', async () => child.exitCode !== null || 'LOCK_CONFIGURATION' in (await outcomes())))
        .then(() => sleep(400))
        .then(() => server.client.acl('SETUSER', 'default', '+@all')),
    () =>
      server.client
        .replicaof('127.0.0.1', '1')
        .then(() => sleep(400))
        .then(() => server.client.replicaof('NO', 'ONE')),
    () => {
      server.pause();
      setTimeout(() => server.resume(), 400);
    },
    async () => {
      await server.kill();
      await sleep(200);
      await server.start();
    },
  ];
  const endsAt = performance.now() + 12_000;
  for (let round = 0; (performance.now() < endsAt || round < faults.length) && child.exitCode === null; round++) {
    await faults[round % faults.length]?.();
    await sleep(450);
    pass();
    await sleep(150);
  }
  expect({ ended, said }).toEqual({ ended: '', said: '' });
  // A release that failed is sent again within seconds.
  await sleep(2_000);
  const all = await outcomes();
  // The faults were felt, and nothing but lock errors came of them.
  expect(Object.keys(all).toSorted()).toEqual(['LOCK_CONFIGURATION', 'LOCK_LOST', 'LOCK_NOT_ACQUIRED', 'LOCK_STORE', 'ok']);
  expect(all['ok']).toBeGreaterThan(200);
  child.kill('SIGTERM');
  await exited;
  expect({ ended, said }).toEqual({ ended: 'SIGTERM', said: '' });
  // Not at once: a turn that nobody claims lasts for a second.
  const left = async (): Promise<string[]> =>
    (await server.client.keys('lock:*')).filter((name) => !/^lock:(done|fence):|lock:\{left/.test(name));
  await until('that nothing is left', async () => (await left()).length === 0, 10_000);
}, 180_000);
