import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { PostgresServer } from '../support/postgres-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let server: PostgresServer;
let proxy: TcpProxy;
let child: ChildProcess;

beforeEach(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
  await server.query('CREATE ROLE clerk LOGIN');
  await server.query('GRANT USAGE ON SCHEMA distributed_lock TO clerk');
  await server.query('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA distributed_lock TO clerk');
  proxy = await TcpProxy.start(server.port);
});
afterEach(async () => {
  child.kill('SIGKILL');
  await proxy.stop();
  await server.stop();
});

async function listeners(): Promise<number[]> {
  const locked = await server.query<{ pid: number }>(
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted",
  );
  return locked.map(({ pid }) => pid);
}

test('a process that dies of any unhandled rejection outlives a mix of all faults without a warning, and ends by SIGTERM', async () => {
  child = fork('test/fixtures/strict-worker.mjs', [server.urlFor('clerk', proxy.port)], {
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
  const faults: (() => Promise<unknown> | void)[] = [
    () => void (proxy.mode = 'killOnReply'),
    () => void (proxy.mode = 'dropReplies'),
    () => void (proxy.mode = 'blackhole'),
    () => void (proxy.mode = 'muteSubscribers'),
    () => void (proxy.latencyMs = 200),
    () => proxy.cut(),
    () => server.query('DELETE FROM distributed_lock.lease'),
    async () => {
      // More often than a signal may have listeners.
      for (let round = 0; round < 12; round++) {
        const before = await listeners();
        await server.terminateBackends();
        await until('a new listener', async () => (await listeners()).some((pid) => !before.includes(pid)));
      }
    },
    () => server.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'clerk'"),
    async () => {
      await server.query('REVOKE USAGE ON SCHEMA distributed_lock FROM clerk');
      await sleep(400);
      await server.query('GRANT USAGE ON SCHEMA distributed_lock TO clerk');
    },
    async () => {
      await server.query('ALTER ROLE clerk CONNECTION LIMIT 0');
      await server.terminateBackends();
      await sleep(400);
      await server.query('ALTER ROLE clerk CONNECTION LIMIT -1');
    },
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
  for (const fault of faults) {
    await fault();
    await sleep(350);
    pass();
    await sleep(100);
    expect({ ended, said }).toEqual({ ended: '', said: '' });
  }
  // A release that failed is sent again within seconds.
  await sleep(2_000);
  const answer = once(child, 'message');
  child.send('outcomes');
  const [outcomes] = (await answer) as [Record<string, number>];
  // The faults were felt, and nothing but lock errors came of them.
  expect(Object.keys(outcomes).toSorted()).toEqual(['LOCK_CONFIGURATION', 'LOCK_LOST', 'LOCK_NOT_ACQUIRED', 'LOCK_STORE', 'ok']);
  expect(outcomes['ok']).toBeGreaterThan(100);
  child.kill('SIGTERM');
  await exited;
  expect({ ended, said }).toEqual({ ended: 'SIGTERM', said: '' });
  const left = "SELECT key FROM distributed_lock.lease WHERE ends > clock_timestamp() AND key NOT LIKE 'lock:{left%'";
  await until('that the leases of 400 ms at most have ended', async () => (await server.query(left)).length === 0);
}, 120_000);
