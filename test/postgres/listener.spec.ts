import { EventEmitter } from 'node:events';
import { stat } from 'node:fs';
import { Listener, type ListeningClient } from '../../lib/postgres/listener';
import { until } from '../support/until';

/** A connection on which everything is answered at once. */
class Client extends EventEmitter {
  connect = (): Promise<unknown> => Promise.resolve();
  query = (): Promise<unknown> => Promise.resolve();
  end = (): Promise<unknown> => Promise.resolve(this.emit('end'));
}

let clients: Client[];
let deaf: number;
let listener: Listener;

/** `sent` is called with the connection on which a message should arrive, for each that was sent. */
function listen(sent: (client: Client, payload: string) => void): Promise<void> {
  clients = [];
  deaf = 0;
  listener = new Listener('host:1:abcdef01', 'presence', {
    connect() {
      const client = new Client();
      clients.push(client);
      return client as unknown as ListeningClient;
    },
    notify: async (_channel, payload) => sent(clients.at(-1) as Client, payload),
    message: () => undefined,
    changed: () => undefined,
    deaf: () => deaf++,
  });
  return listener.open();
}

afterEach(() => listener.close());

test('a connection that ends before its first message is made anew, and is not taken for one that delivers nothing', async () => {
  await listen((client, payload) => (clients.length === 1 ? client.emit('end') : client.emit('notification', { payload })));
  await until('that it hears', () => listener.acknowledged, 1_000);
  expect(deaf).toBe(0);
});

test('a listener that was closed before its first message is not taken for one that hears nothing', async () => {
  await listen(() => listener.close());
  expect(clients).toHaveLength(1);
  expect(deaf).toBe(0);
});

test('a first message that lay unread while the process was blocked was heard', async () => {
  await listen((client, payload) => {
    setImmediate(() => {
      // Stands for what the socket has.
      stat('.', () => client.emit('notification', { payload }));
      const over = performance.now() + 2_100;
      while (performance.now() < over);
    });
  });
  expect(listener.acknowledged).toBe(true);
  expect(deaf).toBe(0);
});
