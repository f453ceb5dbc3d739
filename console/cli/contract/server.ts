import { setTimeout as sleep } from 'node:timers/promises';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { isLockError } from '../../../lib/core/words/errors.js';
import type { Address } from '../address/address.js';
import type { Finding } from '../doctor/finding.js';
import { unheardBy } from '../hearing.js';
import type { Place } from './place.js';

/** For how long a subscription that was just asked for may take, in milliseconds. */
const SUBSCRIBING_MS = 3_000;
const AGAIN_MS = 50;

/** The facts of the servers that the contract needs before its rules are checked. */
export interface Server {
  readonly findings: readonly Finding[];
  /** Whether messages and turns reach a process; undefined where the store says nothing of it. */
  readonly hears: boolean | undefined;
  /** How long a command takes, in milliseconds. */
  readonly latencyMs: number;
}

/** Makes the place, and opens a store in it. A failure among the findings makes the rules pointless. */
export async function examine(place: Place, address: Address): Promise<Server> {
  const findings: Finding[] = [];
  let said: { readonly hearsTurns?: boolean | undefined; readonly latencyMs?: number | undefined } = {};
  try {
    await place.make();
    findings.push(...(await place.findings()).map(strict));
    const store = await place.connect(true);
    try {
      await store.open?.({ prefix: 'contract', warn: () => undefined });
      said = await healthOf(store);
    } finally {
      await store.close();
    }
    if (said.hearsTurns === false) {
      findings.push({ level: 'FAIL', subject: 'messages', text: unheardBy(address) });
    }
  } catch (error) {
    if (!isLockError(error)) {
      throw error;
    }
    findings.push({ level: 'FAIL', subject: 'store', text: error.detail });
  }
  return { findings, hears: said.hearsTurns, latencyMs: said.latencyMs ?? 0 };
}

/**
 * A finding that is a warning for the doctor, since locks work for the time being, may be a failure here: it breaks a
 * promise of the store later on.
 */
function strict(finding: Finding): Finding {
  return finding.level === 'warn' && /: eviction$/.test(finding.subject) ? { ...finding, level: 'FAIL' } : finding;
}

async function healthOf(store: LockStore): Promise<{ hearsTurns?: boolean | undefined; latencyMs?: number | undefined }> {
  const giveUpAt = performance.now() + SUBSCRIBING_MS;
  for (;;) {
    const health = (await store.health?.()) ?? {};
    if (health.hearsTurns !== false || performance.now() > giveUpAt) {
      return health;
    }
    await sleep(AGAIN_MS);
  }
}
