import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { acceptTickets } from '../../lib/tickets/accept-tickets';
import { makeTickets } from '../../lib/nest/current-tickets';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';
import { until } from '../support/until';

test.each(['reads the answer', 'has gone', 'goes at the moment of the answer'])(
  'what a request began, and goes on after its answer, acquires anew, where the client %s',
  async (client) => {
    const store = new MemoryLockStore();
    const [sender, receiver] = [makeLocks(store), makeLocks(store)];
    const accept = acceptTickets();
    let tick: () => Promise<string> = () => Promise.reject(new Error('nothing was begun'));
    let inside = '';
    let hasGone: Promise<unknown> = Promise.resolve();
    const server = createServer((request, response) => {
      accept(request, response, () => {
        void (async () => {
          const locked = (): Promise<string> => receiver.withLock('k', { wait: 0 }, () => 'in').catch(({ code }: { code: string }) => code);
          // Made once, in the context of the first request, as a timer or a consumer is.
          const again = deferred();
          const later = again.promise.then(locked);
          tick = () => {
            again.resolve();
            return later;
          };
          await hasGone;
          inside = await locked();
          if (client === 'goes at the moment of the answer') {
            // Node finishes no response whose connection is gone when it is ended, and tells of the end of the
            // connection later.
            request.socket.destroy();
          }
          response.end('done');
        })();
      });
    }).listen(0);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await sender.withLock('k', async () => {
      const request = get({ port, headers: { 'lock-tickets': makeTickets() as string } });
      request.on('error', () => undefined);
      if (client === 'has gone') {
        const closed = new Promise((resolve) => server.once('request', (_, response) => response.once('close', resolve)));
        hasGone = closed;
        await once(server, 'request');
        request.destroy();
        await closed;
      } else if (client === 'goes at the moment of the answer') {
        const [, answer] = (await once(server, 'request')) as [unknown, ServerResponse];
        let finished = 0;
        answer.once('finish', () => finished++);
        await once(answer, 'close');
        expect([answer.writableEnded, finished]).toEqual([true, 0]);
      } else {
        const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream];
        response.resume();
        await once(response, 'end');
      }
      // Still inside the lock of the client, though nobody reads the answer.
      await until('that the handler has ended', () => inside !== '');
    });
    expect(inside).toBe('in');
    expect(await tick()).toBe('in');
    server.close();
    await Promise.all([sender.shutdown(), receiver.shutdown()]);
  },
);

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
