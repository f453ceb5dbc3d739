import { ACQUIRE_RULES } from './rules/acquire.js';
import { isLockError } from '../core/words/errors.js';
import { EXCHANGE_RULES } from './rules/exchange.js';
import { FENCE_RULES, RESTART_RULES } from './rules/fences.js';
import { HEALTH_RULES } from './rules/health.js';
import { KEY_RULES } from './rules/keys.js';
import { LEASE_RULES } from './rules/leases.js';
import { LIFE_CYCLE_RULES } from './rules/life-cycle.js';
import { MESSAGE_RULES } from './rules/messages.js';
import { OPERATOR_RULES } from './rules/operator.js';
import { PERMIT_RULES } from './rules/shared-keys/permits.js';
import { READER_RULES } from './rules/shared-keys/readers.js';
import { RELEASE_RULES } from './rules/release.js';
import { RENEW_RULES } from './rules/renew.js';
import { SEARCH_RULES } from './rules/search.js';
import { SHARING_RULES } from './rules/shared-keys/sharing.js';
import { skipReason, type Rule } from './rule.js';
import type { StoreContractOptions, TestRunner } from './store-contract.options.js';
import { TICKET_RULES } from './rules/tickets.js';
import { TIME_LIMIT_RULES } from './rules/time-limits.js';
import { NotNotified, TooSlow, Trial, WaitedInVain } from './trial.js';
import { TURN_RULES } from './rules/turns.js';
import { TURN_RULES_OF_SHARERS } from './rules/shared-keys/turns-of-sharers.js';

const GROUPS: Readonly<Record<string, readonly Rule[]>> = {
  acquire: ACQUIRE_RULES,
  release: RELEASE_RULES,
  renew: RENEW_RULES,
  leases: LEASE_RULES,
  fences: FENCE_RULES,
  keys: KEY_RULES,
  'life cycle': LIFE_CYCLE_RULES,
  'time limits': TIME_LIMIT_RULES,
  tickets: TICKET_RULES,
  operator: OPERATOR_RULES,
  messages: MESSAGE_RULES,
  search: SEARCH_RULES,
  health: HEALTH_RULES,
  turns: TURN_RULES,
  exchange: EXCHANGE_RULES,
  sharing: SHARING_RULES,
  readers: READER_RULES,
  permits: PERMIT_RULES,
  'turns of sharers': TURN_RULES_OF_SHARERS,
  restart: RESTART_RULES,
};

/** How often the check of a rule runs on a machine that is too busy for it. */
const MOST_ROUNDS = 5;

/**
 * Defines the tests of the contract of lock stores, which is `LockStore` with its comments. Call it with the functions
 * of your test runner, at the top of a test file or inside a `describe`. A test of something that the store does not
 * offer is skipped; the name of the test says why.
 */
export function storeContract({ describe, test }: TestRunner, options: StoreContractOptions): void {
  for (const [group, rules] of Object.entries(GROUPS)) {
    describe(group, () => {
      for (const rule of rules) {
        const reason = skipReason(rule, options);
        if (reason === undefined) {
          test(rule.name, () => check(rule, options));
        } else {
          test.skip(`${rule.name} (skipped: ${reason})`, async () => undefined);
        }
      }
    });
  }
}

/**
 * Checks a rule; again where it failed because the machine or the database, not the store, was too slow, or a message
 * was lost.
 */
async function check(rule: Rule, options: StoreContractOptions): Promise<void> {
  for (let round = 1; ; round++) {
    const trial = new Trial(options);
    let startedAt = Infinity;
    try {
      await trial.open();
      startedAt = performance.now();
      await rule.check(trial);
      return;
    } catch (thrown) {
      const isInVain = thrown instanceof WaitedInVain;
      const error = isInVain ? thrown.cause : thrown;
      // The time that a check waited in vain at its end says nothing of the machine.
      const tookMs = (isInVain ? thrown.since : performance.now()) - startedAt;
      const mayBeLost = thrown instanceof NotNotified && round === 1 ? 'a notice did not come, and a message may be lost' : undefined;
      const why = whyVoid(error, tookMs, trial.ms(rule.withinMs)) ?? mayBeLost;
      if (round === MOST_ROUNDS || why === undefined) {
        throw error;
      }
      process.emitWarning(`"${rule.name}" is repeated: ${why}.`);
    } finally {
      await trial.close();
    }
  }
}

/** Why a failure says nothing of the store; undefined where it does. */
function whyVoid(error: unknown, tookMs: number, withinMs: number): string | undefined {
  if (tookMs > withinMs) {
    return `it took ${Math.round(tookMs)} ms, and what it claims holds within ${withinMs} ms`;
  }
  if (error instanceof TooSlow) {
    return error.message;
  }
  return isLockError(error) && error.code === 'LOCK_STORE' ? `the database did not answer: ${error.detail}` : undefined;
}
