import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A Redis server of our own that keeps nothing on disk. */
export interface RedisServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the `redis-server` from the PATH on a free port of this machine; undefined where there is none. */
export async function startRedisServer(): Promise<RedisServer | undefined> {
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
    isReady(server.stdout),
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

/** Resolves once the server says that it accepts connections; its log is read and dropped from then on. */
function isReady(log: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => {
    let seen = '';
    log.on('data', (chunk: Buffer) => {
      if (seen !== 'ready' && (seen += chunk.toString()).includes('Ready to accept connections')) {
        seen = 'ready';
        resolve();
      }
    });
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
