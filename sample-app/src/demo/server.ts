import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A server of the demo's own. */
export interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

/** A port of this machine that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Resolves once the log says so; it is read and dropped from then on. */
export function untilLogged(text: string, log: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => {
    let seen: string | undefined = '';
    log.on('data', (chunk: Buffer) => {
      if (seen !== undefined && (seen += chunk.toString()).includes(text)) {
        seen = undefined;
        resolve();
      }
    });
  });
}
