import { LockStoreError } from '../../lib/core/words/errors';
import { type GrantedHold, Grants } from '../../lib/quorum/votes/grants';
import { Unanswered } from '../../lib/quorum/votes/unanswered';
import { newHold } from '../support/new-hold';

describe('a hold that is in', () => {
  const hold = newHold('k', { ttlMs: 60_000 });
  let grants: Grants;

  beforeEach(() => {
    grants = new Grants();
    grants.add(hold, 'first vote', 1_000);
  });

  /** The vote that a server which denied it is told. */
  function known(): Readonly<GrantedHold> | undefined {
    let told: Readonly<GrantedHold> | undefined;
    grants.mend(hold.id, {}, (facts) => {
      told = { ...facts };
      return Promise.resolve();
    });
    return told;
  }

  test('lasts as long as before where a renewal only confirms it, and longer where that asks for more', () => {
    grants.renewed({ ...hold, ttlMs: 1 }, 20_000);
    expect(known()?.endsAt).toBe(61_000);
    grants.renewed(hold, 21_000);
    expect(known()?.endsAt).toBe(81_000);
  });

  test('is still known by the vote of its last attempt where one before is released late', () => {
    grants.add(hold, 'second vote', 2_000);
    grants.delete(hold.id, 'first vote');
    expect(grants.voteOf(hold.id)).toBe('second vote');
    grants.delete(hold.id, 'second vote');
    expect(grants.voteOf(hold.id)).toBe(hold.id);
  });

  test('is let in by no server any more once its release was sent', () => {
    expect(known()?.vote).toBe('first vote');
    expect(grants.release(hold.id)).toBe('first vote');
    expect(known()).toBeUndefined();
  });
});

describe('a hold that a server was asked to let in', () => {
  const failure = (unknown: boolean): Promise<never> => Promise.reject(new LockStoreError('away', 'k', { unknown }));

  test.each([
    ['has answered', false, Promise.resolve('yes')],
    ['has failed in a known way', false, failure(false)],
    ['has not answered', true, failure(true)],
  ])('may still come in where that %s: %p', async (_how, isUnanswered, answer) => {
    answer.catch(() => undefined);
    const unanswered = new Unanswered();
    const asked = unanswered.until(answer, 'hold').catch(() => undefined);
    expect(unanswered.has('hold')).toBe(true);
    await asked;
    expect(unanswered.has('hold')).toBe(isUnanswered);
  });

  test('may still come in while one of several commands is not answered', async () => {
    const unanswered = new Unanswered();
    let answer!: (reply: string) => void;
    const late = unanswered.until(new Promise((resolve) => (answer = resolve)), 'hold');
    await unanswered.until(Promise.resolve('yes'), 'hold');
    expect(unanswered.has('hold')).toBe(true);
    answer('yes');
    await late;
    expect(unanswered.has('hold')).toBe(false);
  });
});
