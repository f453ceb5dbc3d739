import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort, untilLogged, type Server } from './server.js';

/**
 * Starts the `redis-server` from the PATH on a free port of this machine, which keeps nothing on disk; undefined where
 * there is none.
 */
export async function startRedisServer(): Promise<Server | undefined> {
  const port = await freePort();
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    await once(server, 'spawn');
  } catch {
    return undefined;
  }
  const exited = once(server, 'exit');
  const kill = (): void => {
    server.kill('SIGKILL');
  };
  process.once('exit', kill);
  await Promise.race([
    untilLogged('Ready to accept connections', server.stdout),
    exited.then(([code]: unknown[]) => {
      throw new Error(`redis-server ended with exit code ${String(code)}. Try \`redis-server --port ${port}\` to see why.`);
    }),
  ]);
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      process.off('exit', kill);
      kill();
      await exited;
    },
  };
}
