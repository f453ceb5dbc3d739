import { isLockError } from '../../../lib/core/words/errors.js';
import type { Product } from '../../../lib/kit/product.js';

/** One finding of the doctor. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'FAIL';
  /** The subject of the finding, such as `server 2: eviction`. */
  readonly subject: string;
  /** The result, and the next step. */
  readonly text: string;
}

export function ok(subject: string, text: string): Finding {
  return { level: 'ok', subject, text };
}

export function warning(subject: string, text: string): Finding {
  return { level: 'warn', subject, text };
}

/** Whether one of them fails. What was found wrong once is not tried. */
export function fails(findings: readonly Finding[]): boolean {
  return findings.some(({ level }) => level === 'FAIL');
}

/** Which server it is; `tested` are the products that the tests of the locks run with. */
export function versionFinding(subject: string, product: Product | undefined, ...tested: readonly [string, ...string[]]): Finding {
  if (!product) {
    return ok(subject, `${tested[0]} of an unknown version.`);
  }
  const { name, version, warning: text } = product;
  return tested.includes(name)
    ? ok(subject, `${name} ${version}.`)
    : warning(
        subject,
        `${name} ${version}. ${text ?? 'These locks were never run on it.'} docs/choosing-a-store.md, "Tested servers", says how to find out.`,
      );
}

/** The finding of an error; an error that is not of this library is a defect, and is thrown. */
export function failure(subject: string, error: unknown): Finding {
  if (!isLockError(error)) {
    throw error;
  }
  return { level: 'FAIL', subject, text: error.detail };
}
