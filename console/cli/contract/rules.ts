import { isLockError } from '../../../lib/core/words/errors.js';
import { storeContract, type StoreContractOptions } from '../../../lib/contract/index.js';

/** A rule of the contract. */
export interface Rule {
  readonly group: string;
  readonly name: string;
  /** Rejects where the store breaks it; undefined where it is skipped, and the name says why. */
  readonly check: (() => Promise<void>) | undefined;
}

/** The result of a rule. */
export interface Verdict {
  readonly level: 'ok' | 'skip' | 'FAIL';
  readonly group: string;
  readonly name: string;
  /** The error of a rule that fails, and the next step where it is known. */
  readonly text?: string;
}

/** The rules of the contract, in their order. No test runner is needed. */
export function rulesOf(options: StoreContractOptions): readonly Rule[] {
  const rules: Rule[] = [];
  let group = '';
  const test = Object.assign((name: string, check: () => Promise<void>) => rules.push({ group, name, check }), {
    skip: (name: string) => rules.push({ group, name, check: undefined }),
  });
  const describe = (name: string, body: () => void): void => {
    group = name;
    body();
  };
  storeContract({ describe, test }, options);
  return rules;
}

/** Checks a rule; `hint` is what its failure comes from where that is known of its group. */
export async function verdictOf({ group, name, check }: Rule, hint: (group: string) => string): Promise<Verdict> {
  if (!check) {
    return { level: 'skip', group, name };
  }
  try {
    await check();
    return { level: 'ok', group, name };
  } catch (thrown) {
    const error = (thrown as { readonly cause?: unknown }).cause ?? thrown;
    const said = isLockError(thrown) ? thrown.detail : isLockError(error) ? error.detail : (error as Error).message;
    return { level: 'FAIL', group, name, text: `${said.replaceAll(/\s*\n\s*/g, ' ')} ${hint(group)}`.trim() };
  }
}
