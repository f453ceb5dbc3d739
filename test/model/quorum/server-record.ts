import type { Machine } from './voting-server.js';

/** How far the clock may go back before it counts as set back, in milliseconds. */
const SET_BACK_MS = 1_000;

/** The arguments of REPORT. */
export interface Report {
  /** The run that the process talks to. */
  readonly run: string;
  /** Whether the process knows an earlier run of this server. */
  readonly restarted: boolean;
  /** Whether its votes count from now on, and why. */
  readonly counts: '' | 'again' | 'first';
  /** The least that its counter is then. */
  readonly least: number;
  /** The reports of the process about its servers and settings, and for how long each holds. */
  readonly said: readonly (readonly [string, number])[];
}

interface Run {
  readonly name: string;
  seen: number;
  counts: boolean;
  first: number | undefined;
  restarted: boolean;
}

/** The record of a server about its part in the quorum, as a state machine: the effects of REPORT. */
export class ServerRecord {
  readonly #machine: Machine;
  readonly #said = new Map<string, number>();
  #run: Run | undefined;
  #readAt = 0;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  report({ run, restarted, counts, least, said }: Report): unknown {
    const now = Math.floor(this.#machine.us / 1_000);
    if (this.#run && this.#readAt - now > SET_BACK_MS) {
      // A report holds for as long as it did by the old clock.
      this.#run.seen = now;
      for (const [what, until] of this.#said) {
        this.#said.set(what, until - this.#readAt + now);
      }
    }
    if (this.#run?.name !== run) {
      this.#run = { name: run, seen: now, counts: false, first: undefined, restarted: this.#run !== undefined };
    }
    this.#readAt = now;
    this.#run.restarted ||= restarted;
    if (counts === 'again' || (counts === 'first' && !this.#run.restarted)) {
      this.#machine.counter = Math.max(this.#machine.counter ?? least, least);
      this.#run.counts = true;
      this.#run.first ??= counts === 'first' ? now : undefined;
    }
    for (const [what, forMs] of said) {
      this.#said.set(what, Math.max(now + forMs, this.#said.get(what) ?? 0));
    }
    for (const [what, until] of this.#said) {
      if (until <= now) {
        this.#said.delete(what);
      }
    }
    return {
      knownMs: now - this.#run.seen,
      counts: this.#run.counts,
      firstUseMs: this.#run.first === undefined ? -1 : Math.max(0, now - this.#run.first),
      restarted: this.#run.restarted,
      fence: this.#machine.counter ?? 0,
      serverMs: now,
      reported: [...this.#said.keys()].toSorted(),
    };
  }

  /** As it stands in the hash. */
  stored(): Readonly<Record<string, number | string>> {
    if (!this.#run) {
      return {};
    }
    const { name, seen, counts, first, restarted } = this.#run;
    return {
      run: name,
      seen,
      read: this.#readAt,
      restarted: Number(restarted),
      ...(counts && { counts: 1 }),
      ...(first !== undefined && { first }),
      ...Object.fromEntries(this.#said),
    };
  }
}
