import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FoundLock } from '../../core/seam/lock-store.js';
import { rulesWith, type Rule } from '../rule.js';
import type { OfferedStore } from '../trial.js';
import { KINDS, twoOf } from './shared-keys/sharing.js';

const searchRule = rulesWith({ needs: ['search', 'operator'] });

async function found({ operator }: OfferedStore, prefix: string): Promise<FoundLock[]> {
  const locks: FoundLock[] = [];
  for await (const part of operator.search(prefix)) {
    locks.push(...part);
  }
  return locks;
}

/** Rules about the locks that a search finds. */
export const SEARCH_RULES: readonly Rule[] = [
  searchRule('a search finds the locks that are held and whose keys begin with the prefix', async (trial) => {
    const prefix = `search ${randomUUID()} `;
    const keys = ['a', 'b:*', '{c}%7B', 'd\n?[x]\\', 'é 漢 😀', "'"].map((name) => prefix + name);
    for (const key of [...keys, `other ${prefix}`]) {
      await trial.acquired({ key });
    }
    const locks = await found(trial.other, prefix);
    assert.deepEqual(new Set(locks.map(({ key }) => key)), new Set(keys));
    assert.deepEqual(
      (await found(trial.other, `${prefix}b`)).map(({ key }) => key),
      [`${prefix}b:*`],
    );
  }),

  searchRule('a search shows of a lock what inspect shows', async (trial) => {
    await trial.acquired();
    const [lock = assert.fail('it was not found')] = await found(trial.other, trial.key);
    const inspected = (await trial.other.operator.inspect(trial.key)) ?? assert.fail('nothing is shown');
    const { since } = inspected;
    assert.deepEqual({ ...lock, since, remainingMs: 0 }, { ...inspected, key: trial.key, remainingMs: 0 });
    // Where a lock is kept on several servers, each has a clock of its own, and others may answer first.
    const apartMs = Math.abs(lock.since.getTime() - since.getTime());
    assert.ok(apartMs < trial.ms(1_000), `since ${lock.since.toISOString()} by the search, since ${since.toISOString()} by inspect`);
  }),

  ...KINDS.map(({ who, offer, shares }) =>
    searchRule(`${who} is found, and its key is shown as inspect shows it`, { needs: [offer] }, async (trial) => {
      await twoOf(trial, shares);
      const [lock = assert.fail('it was not found')] = await found(trial.other, trial.key);
      assert.deepEqual([lock.shares, lock.holds], [shares, 2]);
    }),
  ),

  searchRule('a search finds no lock that is free', async (trial) => {
    const held = await trial.acquired();
    await trial.store.release(held);
    assert.deepEqual(await found(trial.other, trial.key), []);
  }),

  searchRule('a search finds no lock whose lease has ended', { needs: ['expiry'] }, async (trial) => {
    await trial.acquired({ ttlMs: trial.ttl(100) });
    await trial.pass(130);
    assert.deepEqual(await found(trial.other, trial.key), []);
  }),
];
