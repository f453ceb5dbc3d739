import { LockConfigurationError, LockStoreError } from '../../lib/core/words/errors';
import { isForbidden } from '../../lib/redis/connection/redis-errors';
import type { QuorumServer } from '../../lib/quorum/members/quorum-server';
import { tooFew } from '../../lib/quorum/too-few';

test('a right that is missing at one server is seen also where another one is away', () => {
  const server = { name: 'a' } as QuorumServer;
  const away = new LockStoreError('away', 'k', { cause: new Error('Connection is closed.'), unknown: false });
  const forbidden = new LockConfigurationError('forbidden', 'k', { cause: new Error('NOPERM No permissions to access a key') });
  const failures = [away, forbidden].map((error) => ({ server, error }));
  expect(isForbidden(tooFew('k', 3, failures, false))).toBe(true);
});
