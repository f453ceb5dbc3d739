import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { LockConfigurationError, type LockError } from '../../lib/core/words/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { clusterClient } from '../support/redis-source';
import { RedisServer } from '../support/redis-server';
import { refusalOf } from '../support/refusal-of';

test('a wrong password of a Cluster fails at start, naming what to correct and not the password', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-password-'));
  const node = await RedisServer.start('--dir', folder, '--cluster-enabled', 'yes');
  await node.client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await node.client.config('SET', 'requirepass', 'right');
  const client = clusterClient([node], { redisOptions: { password: 'wrong-password' }, lazyConnect: true });
  const store = new RedisLockStore(client.source);
  const error = await refusalOf(() => store.open({ prefix: 'lock', warn: () => undefined }).finally(() => store.close()));
  client.close();
  await node.stop();
  rmSync(folder, { recursive: true });
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect((error as LockError).detail).toMatch(/WRONGPASS.*Correct the user name and password/);
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('wrong-password');
});
