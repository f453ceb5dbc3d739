import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { rule, type Rule } from '../rule.js';

/** Rules about the health that a store reports of itself. */
export const HEALTH_RULES: readonly Rule[] = [
  rule('health measures in milliseconds, and finds every server there', { needs: ['health'], withinMs: 500 }, async ({ store }) => {
    const { latencyMs = 0, clockSkewMs = 0, members = [], majority = 0 } = await store.health();
    assert.ok(latencyMs >= 0 && latencyMs <= 1_000, `latencyMs is ${latencyMs}`);
    assert.ok(Math.abs(clockSkewMs) < 60_000, `clockSkewMs is ${clockSkewMs}`);
    assert.ok(
      members.every(({ reachable, voting }) => reachable && voting !== false),
      inspect(members),
    );
    assert.ok(majority <= members.length, `the majority of ${members.length} servers is ${majority}`);
  }),

  rule('health names no key, no owner and no holder', { needs: ['health'] }, async (trial) => {
    const { key, owner, by } = await trial.acquired({ by: 'a holder in some place' });
    const said = inspect(await trial.store.health(), { depth: null, showHidden: true });
    assert.ok(![key, owner, by].some((secret) => said.includes(secret)), said);
  }),
];
