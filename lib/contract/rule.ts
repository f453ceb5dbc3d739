import type { StoreContractOptions, StoreOffer } from './store-contract.options.js';
import type { Trial } from './trial.js';

/** A need of a rule, beside the four operations: an offer of the store, leases of a kind, or means of the suite. */
export type Need = StoreOffer | 'expiry' | 'no expiry' | 'stall' | 'restart';

/** One thing that a store must do. */
export interface Rule {
  /** A sentence: the name of its test. */
  readonly name: string;
  readonly needs: readonly Need[];
  /**
   * How long its check may take for its claims to hold, in milliseconds, before the suite stretches it. A check that
   * fails and took longer is repeated: the machine was busy. Default: 4 s, since locks are held for 5 s where a rule
   * does not say otherwise.
   */
  readonly withinMs: number;
  /** Rejects where the store breaks the rule. */
  readonly check: (trial: Trial) => Promise<void>;
}

/** The conditions of a rule. */
interface Conditions {
  readonly needs?: readonly Need[];
  readonly withinMs?: number;
}

/** Makes a rule for every store that has what it needs. */
interface MakeRule {
  (name: string, check: Rule['check']): Rule;
  (name: string, conditions: Conditions, check: Rule['check']): Rule;
}

/** Makes rules that share conditions; each may have further ones. */
export function rulesWith(shared: Conditions): MakeRule {
  return (name: string, ...rest: [Rule['check']] | [Conditions, Rule['check']]): Rule => {
    const [own, check] = rest.length === 1 ? [{} as Conditions, rest[0]] : rest;
    const { withinMs = 4_000 } = { ...shared, ...own };
    return { name, needs: [...(shared.needs ?? []), ...(own.needs ?? [])], withinMs, check };
  };
}

export const rule = rulesWith({});

/** Why a need is not met, where it is no offer by the name that the suite knows. */
const REASONS: Readonly<Partial<Record<Need, string>>> = {
  forced: 'the store does not offer onForced of operator',
  expiry: 'leases of the store do not end by time',
  'no expiry': 'leases of the store end by time',
  stall: 'the suite was given no `stall`',
  restart: 'the suite was given no `restart`',
};

/** Why a rule is not tested; undefined where it is. */
export function skipReason({ needs }: Rule, options: StoreContractOptions): string | undefined {
  const missing = needs.find((need) => !isMet(need, options));
  return missing && (REASONS[missing] ?? `the store does not offer ${missing}`);
}

function isMet(need: Need, { offers = [], expires = true, stall, restart }: StoreContractOptions): boolean {
  switch (need) {
    case 'expiry':
      return expires;
    case 'no expiry':
      return !expires;
    case 'stall':
      return stall !== undefined;
    case 'restart':
      return restart !== undefined;
    default:
      return offers.includes(need);
  }
}
