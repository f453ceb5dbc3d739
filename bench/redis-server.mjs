import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectClient } from './redis-client.mjs';

/** A real redis-server of the benchmark's own, on a free port and without persistence. */
export async function startRedis() {
  const port = await freePort();
  const child = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], { stdio: 'ignore' });
  // Also where the benchmark fails halfway.
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  await once(child, 'spawn');
  await untilListening(port);
  const client = await connectClient(port);
  return {
    port,
    client,
    pid: child.pid,
    version: /redis_version:(\S+)/.exec(await client.info('server'))[1],
    /** The CPU time that it has taken so far, in seconds. */
    async cpuSeconds() {
      const times = [...(await client.info('cpu')).matchAll(/^used_cpu_(?:user|sys):(\S+)/gm)];
      return times.reduce((sum, [, seconds]) => sum + Number(seconds), 0);
    },
    /** Its keys, how many of them are to expire, and the memory that it uses besides that of its clients. */
    async content() {
      const info = await client.info('everything');
      const [, keys = 0, expiring = 0] = /^db0:keys=(\d+),expires=(\d+)/m.exec(info) ?? [];
      const bytes = (name) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)[1]);
      return { keys: Number(keys), expiring: Number(expiring), bytes: bytes('used_memory') - bytes('mem_clients_normal') };
    },
    async stop() {
      client.disconnect();
      const exited = once(child, 'exit');
      kill();
      await exited;
      process.off('exit', kill);
    },
  };
}

/** How often any command was run, those inside scripts included. */
export async function totalCalls(client) {
  const stats = await client.info('commandstats');
  return [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].reduce(
    (sum, [, name, calls]) => (name === 'info' ? sum : sum + Number(calls)),
    0,
  );
}

export function findRedis() {
  try {
    return execFileSync('redis-server', ['--version'], { encoding: 'utf8' });
  } catch {
    throw new Error('The benchmark needs redis-server 6 or later on the PATH: npm test says how to install it.');
  }
}

async function untilListening(port) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await sleep(25);
    } finally {
      socket.destroy();
    }
  }
  throw new Error(`redis-server does not listen on port ${port}`);
}

export async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}
