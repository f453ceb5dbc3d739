import { LockedCall } from './locked-call.js';
import { NOWHERE } from './play-steps.js';
import type { Process } from './process.js';
import type { Call, Lead } from './scenario.js';

/** A process that stands by to lead, and leads, for some time: each of its terms is a call. */
export class Candidate {
  readonly #process: Process;
  readonly #lead: Lead;
  readonly #call: Call;
  #term: LockedCall;
  #hasStopped = false;

  constructor(process: Process, lead: Lead) {
    const { key, ttl, steps } = lead;
    const never = { maxHold: undefined, minHold: 0, abortAfterMs: undefined, joins: undefined, listenerMs: 0 };
    this.#process = process;
    this.#lead = lead;
    this.#call = { keys: [key], how: 'lead', steps, ttl, wait: 0, renew: true, reentry: 'context', ...never };
    this.#term = new LockedCall(process, this.#call, NOWHERE);
  }

  /** Rejects where the process shuts down already. */
  async run(): Promise<void> {
    const { key, ttl, pause, forMs } = this.#lead;
    this.#term.begins();
    try {
      const { by } = this.#term;
      const candidate = this.#process.service.lead(key, (lock) => this.#leads(lock), { ttl, pause, by });
      await this.#process.sleep(forMs);
      this.#term.stops();
      await candidate.stop();
    } finally {
      this.#hasStopped = true;
      // Code that goes on for too long ends later.
      if (!this.#term.isInside) {
        this.#term.ends();
      }
    }
  }

  async #leads(lock: Parameters<LockedCall['lead']>[0]): Promise<void> {
    const term = this.#term;
    try {
      await term.lead(lock);
    } finally {
      if (!this.#hasStopped) {
        this.#term = new LockedCall(this.#process, this.#call, NOWHERE, term.by);
        this.#term.begins();
      }
    }
  }
}
