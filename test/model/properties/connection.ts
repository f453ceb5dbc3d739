import type { Batches } from '../../../lib/kit/batches.js';
import type { Process } from './process.js';
import { LONGEST_TTL_MS, type Fate } from './scenario.js';

/** A delay that is no longer, both ways together, disturbs nobody, in milliseconds. */
const CALM_MS = 10;

/** For how long after its sender has given up core expects that a command may still be carried out, in milliseconds. */
const LATEST_MS = 1_000;

/** How often the server refuses one of a batch. */
const REFUSED = 0.05;

interface WireRequest {
  readonly key: string;
  readonly what: string;
  execute(): unknown;
}

/** The connection of a process to the store: what happens to each command is in its script. */
export class Connection {
  readonly #process: Process;
  readonly #fates: readonly Fate[];
  readonly #latencyMs: number;
  readonly #batches: Batches<WireRequest>;
  #commands = 0;
  #onTheirWay = 0;
  #cutOffUntil = -1;

  constructor(process: Process, fates: readonly Fate[]) {
    this.#process = process;
    this.#fates = fates;
    this.#latencyMs = process.world.scenario.latencyMs;
    this.#batches = new process.library.Batches((requests) => this.#carry(requests));
  }

  /** Until then all commands and replies are lost. */
  get cutOffUntil(): number {
    return this.#cutOffUntil;
  }

  cutOff(ms: number): void {
    const { world } = this.#process;
    this.#cutOffUntil = Math.max(this.#cutOffUntil, world.now + ms);
    this.#process.disturbed(ms + world.commandLimitMs);
  }

  /** One command, alone; rejects, with unknown outcome, where no reply comes in time. */
  async send<R>(key: string, what: string, execute: () => R): Promise<R> {
    this.#batches.flush();
    const [reply] = await this.#carry([{ key, what, execute }]);
    return reply as R;
  }

  /** Sends a command with the other commands of this turn, which share its fate, unless nothing is on its way. */
  async sendWithOthers<R>(key: string, what: string, execute: () => R): Promise<R> {
    return this.#onTheirWay === 0 ? this.send(key, what, execute) : ((await this.#batches.ask({ key, what, execute })) as R);
  }

  async #carry(requests: readonly WireRequest[]): Promise<readonly unknown[]> {
    const [{ key }] = requests as readonly [WireRequest];
    this.#onTheirWay++;
    try {
      return await this.#pass(key, requests.map(({ what }) => what).join(' and '), () =>
        requests.map((request) => (requests.length > 1 && this.#refuses() ? this.#refusal(request) : request.execute())),
      );
    } finally {
      this.#onTheirWay--;
    }
  }

  #refuses(): boolean {
    const { world } = this.#process;
    return !world.isHealed && world.scenario.isHard && world.random.chance(REFUSED);
  }

  /** The server's memory is full, for one request. */
  #refusal({ key, what }: WireRequest): Error {
    this.#process.disturbed(this.#process.world.commandLimitMs);
    return new this.#process.library.LockStoreError(`${what}: refused`, key, { unknown: false });
  }

  #pass<R>(key: string, what: string, execute: () => R): Promise<R> {
    const process = this.#process;
    const { world, library } = process;
    const { timeline, scenario } = world;
    const { kind, outMs, backMs, lagMs } = (world.isHealed ? undefined : this.#fates[this.#commands++]) ?? this.#calm();
    world.note(() => `${process.id} sends ${what}: ${kind} ${outMs}+${backMs}`);
    // Whatever worked before it was sent has taken its time.
    const workMs = process.now - world.now;
    const sentAt = world.now;
    const isReset = kind === 'reset' || (!world.isHealed && process.refusedUntil > process.now);
    const resetMs = Math.min(outMs, world.commandLimitMs);
    const lastsMs = outMs + backMs + (kind === 'doubled' ? lagMs : 0);
    if (isReset) {
      process.disturbed(workMs + resetMs);
    } else if (kind === 'request lost' || kind === 'reply lost' || lastsMs > CALM_MS) {
      process.disturbed(workMs + Math.max(world.commandLimitMs, lastsMs));
    }
    return new Promise((resolve, reject) => {
      timeline.after(workMs + (isReset ? resetMs : scenario.commandTimeoutMs), () =>
        process.handle(() => reject(new library.LockStoreError(`${what}: no reply`, key, { unknown: true })), true),
      );
      if (isReset) {
        return;
      }
      const arrive = (isAnswered: boolean): void => {
        const reply = world.attempt(execute);
        if (world.now > sentAt + workMs + world.commandLimitMs + LATEST_MS) {
          // A store that knows the clock of its server refuses it. Here it may start a lease that no release ends.
          process.lateLeaseUntil = world.now + LONGEST_TTL_MS;
        }
        world.note(() => `${process.id}: ${what} is carried out: ${JSON.stringify(reply?.result)}`);
        if (isAnswered && reply && !this.#isCutOff) {
          timeline.after(backMs, () => process.handle(() => resolve(reply.result)));
        }
      };
      if (kind !== 'request lost' && !this.#isCutOff) {
        timeline.after(workMs + outMs, () => arrive(kind === 'passes' || kind === 'sender stops'));
      }
      if (kind === 'doubled') {
        timeline.after(workMs + outMs + lagMs, () => arrive(true));
      }
      if (kind === 'sender stops') {
        process.pause(lagMs);
      }
    });
  }

  get #isCutOff(): boolean {
    return !this.#process.world.isHealed && this.#cutOffUntil > this.#process.world.now;
  }

  #calm(): Fate {
    const { random } = this.#process.world;
    const oneWay = (): number => (this.#latencyMs > 1 ? random.whole(1, this.#latencyMs) : 1);
    return { kind: 'passes', outMs: oneWay(), backMs: oneWay(), lagMs: 0 };
  }
}
