import { createServer, request, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

/** A proxy that puts an application below a prefix, of which the application knows nothing. */
export async function startStrippingProxy(target: string, prefix: string): Promise<{ url: string; server: Server }> {
  const { port } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url?.startsWith(prefix) ? incoming.url.slice(prefix.length) : undefined;
    if (path === undefined) {
      outgoing.writeHead(404).end();
      return;
    }
    const passed = request({ port, host: '127.0.0.1', path, method: incoming.method, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`, server };
}
