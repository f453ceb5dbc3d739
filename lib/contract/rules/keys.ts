import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rule, type Rule } from '../rule.js';

/** Examples of odd keys: a key is anything of 1 to 1,024 bytes. */
const ODD_KEYS = [
  'a',
  'A',
  ' a',
  'a ',
  'a\0',
  'a\n',
  'line\r\nbreak\t\u001b\u007f',
  'a:b',
  'a::b',
  ':',
  '{',
  '}{',
  '{}',
  '{a}',
  'a{b}c',
  '%',
  '%7B',
  '%257B',
  '%s %d',
  '*',
  'a*',
  '?[a-z]',
  '\\',
  '\\n',
  "'; DROP TABLE locks; --",
  '"quoted"',
  '$1',
  '1',
  '01',
  '1.0',
  'null',
  '__proto__',
  'constructor',
  'toString',
  'ключ 🔑',
  'é',
  'e\u0301',
  'ﬁ',
  'fi',
  '\ufeff',
  '\u200b',
  'x'.repeat(1_024),
  '🔑'.repeat(256),
] as const;

/** Keys of any kind. */
export const KEY_RULES: readonly Rule[] = [
  rule('locks on different keys are independent of each other', async (trial) => {
    const first = await trial.acquired();
    const second = await trial.acquired({ key: `${trial.key} ` });
    assert.equal(await trial.store.release(first), true);
    await trial.expectHeld(second);
    await trial.expectFree();
  }),

  rule('keys with braces, percent signs, control characters, quotes and all of Unicode are keys like any other', async (trial) => {
    // Names that others may have in use as well.
    const prefix = `contract-${randomUUID()}`;
    const [store, other] = [await trial.connect(prefix), await trial.connect(prefix)];
    for (const key of ODD_KEYS) {
      const held = await trial.acquired({ key }, store);
      await trial.refused(trial.hold({ key }), other);
      assert.deepEqual(await store.renew([held]), [true], `the lock on ${JSON.stringify(key)} was not renewed`);
      assert.equal(await store.release(held), true, `the lock on ${JSON.stringify(key)} was not released`);
    }
  }),

  rule('keys that look alike are different keys', async (trial) => {
    const odd = ODD_KEYS.filter(({ length }) => length < 100);
    const keys = odd.flatMap((key) => [`${key}${trial.key}`, `${trial.key}${key}`]);
    const held = await Promise.all(keys.map((key) => trial.acquired({ key })));
    const released = held.map((hold) => trial.store.release(hold));
    assert.deepEqual(new Set(await Promise.all(released)), new Set([true]));
  }),

  rule('a key of 1,024 characters and one that differs in the last are different keys', async (trial) => {
    const long = trial.key.padEnd(1_023, 'k');
    await trial.acquired({ key: `${long}1` });
    await trial.acquired({ key: `${long}2` });
    await trial.refused(trial.hold({ key: `${long}1` }));
  }),
];
