import { EventEmitter } from 'node:events';
import { NoReply } from '../../lib/kit/no-reply';
import type { Connection } from '../../lib/redis/connection/connection';
import { ConnectionFailures } from '../../lib/redis/connection/connection-failures';

let connection: EventEmitter;
let failures: ConnectionFailures;

beforeEach(() => {
  connection = new EventEmitter();
  failures = new ConnectionFailures();
  failures.watch(connection as unknown as Connection);
});

const refusal = (): Error => Object.assign(new Error('WRONGPASS invalid username-password pair'), { name: 'ReplyError' });

test('an error of before a connection was ready explains no command that is not answered since', () => {
  connection.emit('error', new Error('connect ECONNREFUSED'));
  expect(failures.explain(new NoReply(100), 'k').detail).toContain('ECONNREFUSED');
  connection.emit('ready');
  expect(failures.explain(new NoReply(100), 'k').detail).toContain('no reply within 100 ms');
});

test('a connection that was refused has its reason, and one that was made after that has none', () => {
  connection.emit('error', refusal());
  connection.emit('ready');
  expect(failures.setupRefusal).toMatchObject({ code: 'LOCK_CONFIGURATION' });
  connection.emit('error', refusal());
  connection.emit('connect');
  connection.emit('ready');
  expect(failures.setupRefusal).toBeUndefined();
});
