import { randomUUID } from 'node:crypto';
import { isLockError, type Lock, type LockLostError, type Permit } from 'nestjs-distributed-lock';
import type { Shares } from '../../lib/core/words/call-options.js';
import { now, type HistoryFile } from './history.js';

/** How often a body that goes on writes down that it trusts its lease, in milliseconds. */
const TRUST_MS = 100;

/** Further facts of a call that the history has to know. */
interface Details {
  readonly waitMs?: number | undefined;
  /** Its lease is not renewed. */
  readonly isFixed?: boolean;
  readonly shares?: Shares;
}

type Held = Lock | Permit;

/** One locked call as the history sees it: asked for, entered, ended, settled. */
export class Attempt {
  readonly owner: string;
  readonly keys: readonly string[];
  readonly #history: HistoryFile;
  readonly #op: 'acquire' | 'enter';
  readonly #holds: readonly string[];
  #entered = false;
  #lost = false;

  /** An attempt with the owner of another enters that one's lock. */
  constructor(history: HistoryFile, keys: readonly string[], owner?: string, details: Details = {}) {
    this.#history = history;
    this.#op = owner === undefined ? 'acquire' : 'enter';
    this.owner = owner ?? randomUUID();
    this.keys = keys;
    this.#holds = keys.map(() => randomUUID());
    this.#write(this.#op, 'invoke', details);
  }

  /** Runs a call and writes down how it ended, whatever that was. */
  static async run(
    history: HistoryFile,
    keys: readonly string[],
    owner: string | undefined,
    call: (attempt: Attempt) => Promise<unknown>,
    details?: Details,
  ): Promise<void> {
    const attempt = new Attempt(history, keys, owner, details);
    try {
      await call(attempt);
      attempt.settled('returned');
    } catch (error) {
      attempt.settled(outcomeOf(error), isLockError(error) ? error.detail : String(error));
    }
  }

  /** The body of a locked call. */
  async inside<T>(lock: Held, body: () => Promise<T>): Promise<T> {
    this.#entered = true;
    for (const [at, key] of this.keys.entries()) {
      const t = now();
      const deadline = t + lock.remainingMs();
      const fence = 'fenceOf' in lock ? lock.fenceOf(key) : undefined;
      this.#history.write({ op: this.#op, phase: 'ok', ...this.#subject(at), t: now(), fence, deadline });
    }
    lock.signal.addEventListener('abort', () => this.#notified(lock), { once: true });
    if (lock.signal.aborted) {
      this.#notified(lock);
    }
    const watch = setInterval(() => this.trust(lock), TRUST_MS);
    try {
      return await body();
    } finally {
      clearInterval(watch);
      this.trust(lock);
      this.#write('release', 'invoke');
    }
  }

  /** Writes down that the lock is held, if it is. The time is read first: what is held later was held then. */
  trust(lock: Held): void {
    const t = now();
    const remainingMs = lock.remainingMs();
    if (remainingMs > 0) {
      this.#write('trust', 'ok', { t, deadline: t + remainingMs });
    }
  }

  /** A leader that is asked to end has its lock until then. */
  #notified(lock: Held): void {
    const loss = lock.signal.reason as LockLostError;
    if (loss.reason !== 'shutdown' || !lock.isHeld()) {
      this.tellLoss(outcomeOf(loss));
    }
  }

  /** Its code was notified that the lease is lost. */
  tellLoss(outcome: string): void {
    if (!this.#lost) {
      this.#lost = true;
      this.#write('lost', 'info', { outcome });
    }
  }

  /** How the call ended. */
  settled(outcome: string, why?: string): void {
    if (this.#entered) {
      this.#write('release', 'ok', { outcome, why });
    } else {
      this.#write(this.#op, outcome === 'LOCK_STORE unknown' ? 'info' : 'fail', { outcome, why });
    }
  }

  #write(op: 'acquire' | 'enter' | 'trust' | 'release' | 'lost', phase: 'invoke' | 'ok' | 'fail' | 'info', more: object = {}): void {
    for (const at of this.keys.keys()) {
      this.#history.write({ op, phase, ...this.#subject(at), ...more });
    }
  }

  #subject(at: number): { key: string; owner: string; hold: string } {
    return { key: this.keys[at] as string, owner: this.owner, hold: this.#holds[at] as string };
  }
}

/** `thrown: …` for what is no lock error. */
export function outcomeOf(error: unknown): string {
  if (!isLockError(error)) {
    return `thrown: ${String(error)}`;
  }
  const { code } = error;
  const detail = 'reason' in error ? String(error.reason) : 'unknown' in error && error.unknown ? 'unknown' : '';
  return `${code} ${detail}`.trim();
}
