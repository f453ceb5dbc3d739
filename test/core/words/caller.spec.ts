import { hostname } from 'node:os';
import { holderIn } from '../../../lib/core/words/caller';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';

test('a holder is host and process, and what the call says of itself', async () => {
  const locks = makeLocks(new MemoryLockStore());
  await locks.acquire('unnamed');
  await locks.acquire('named', { by: 'Stock.count' });
  const here = `${hostname()} (pid ${process.pid})`;
  expect(await locks.operations.inspect('unnamed')).toMatchObject({ by: here });
  expect(await locks.operations.inspect('named')).toMatchObject({ by: `${here} Stock.count` });
});

describe('who holds a lock is who acquired it,', () => {
  const BY = 'my host.local (pid 123) Stock.count';

  test.each([
    ['where nothing is known of its processes', undefined],
    ['where no process is in it', []],
    ['while its process is in it', ['my_host.local:123:a']],
    ['while its process is in it with others before', ['other:45:b', 'my_host.local:123:a']],
    ['where processes have names of another form', ['other']],
    ['where names of another form have numbers too', ['a:b:45:c']],
    ['where a name has no host', [':45:c']],
  ])('%s', (_, processes) => {
    expect(holderIn(BY, processes)).toBe(BY);
  });

  test.each([
    ['left it to another', ['other.local:456:b']],
    ['left it to others, of whom it is the first', ['other.local:456:b', 'third:7:c']],
    ['left it, and another of its host is in it', ['other.local:456:b', 'my_host.local:1234:a']],
  ])('or another process once that has %s', (_, processes) => {
    expect(holderIn(BY, processes)).toBe('other.local (pid 456)');
  });

  test('also where it does not say its process', () => {
    expect(holderIn('a script', ['other:45:b'])).toBe('a script');
  });
});
