import { AsyncResource } from 'node:async_hooks';
import type { HoldRecord } from '../../../lib/core/seam/lock-store.js';
import { commandLimit, leaseDeadline } from '../../../lib/core/seam/time.js';
import type { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import type { Event } from '../properties/timeline.js';
import type { Host } from './host.js';
import { Link } from './link.js';
import type { QuorumWorld } from './quorum-world.js';
import type { LoadLibrary, SimulatedLibrary } from './simulated-library.js';

const KEY = 'k';

/** A process with the real store of a quorum, which takes a lock again and again. A restart is another process. */
export class Participant {
  readonly world: QuorumWorld;
  readonly name: string;
  readonly hosts: readonly Host[];
  readonly links: Link[] = [];
  readonly store: QuorumLockStore;
  readonly #library: SimulatedLibrary;
  readonly #backlog: { readonly timers: (() => void)[]; readonly others: (() => void)[] } = { timers: [], others: [] };
  #isAlive = true;
  #pausedUntil = -1;
  /** The time that its monotonic clock has missed, in milliseconds. */
  #sleptMs = 0;
  #trustedUntil = 0;
  #holds = 0;

  constructor(world: QuorumWorld, name: string, hosts: readonly Host[], load: LoadLibrary) {
    this.world = world;
    this.name = name;
    this.hosts = hosts;
    const { timeline, random } = world;
    // oxlint-disable-next-line unicorn/no-this-assignment, typescript/no-this-alias -- the library makes connections
    const participant = this;
    this.#library = load({
      setTimeout: (run, ms) => this.#setTimeout(run, ms),
      clearTimeout: (timer) => {
        if (timer) {
          (timer as Event).cancelled = true;
        }
      },
      random: () => random.next(),
      monotonic: () => this.#monotonic,
      wall: () => Math.floor(1_700_000_000_000 + timeline.now),
      simulated: {
        RedisConnection: class {
          constructor({ source }: { readonly source: string }, _batch: unknown, onReady: (address: string) => void) {
            const host = hosts.find((each) => source.endsWith(`//${each.name}`)) as Host;
            const link = new Link(participant, host, onReady);
            participant.links.push(link);
            // oxlint-disable-next-line no-constructor-return -- the link is the connection
            return link;
          }
        },
        Wakeups: NoWakeups,
      },
    });
    this.store = new this.#library.QuorumLockStore(
      hosts.map((host) => `redis://${host.name}`),
      { longestLease: world.conditions.longestLeaseMs },
    );
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isPaused(): boolean {
    return this.#pausedUntil > this.world.timeline.now;
  }

  /** Until when it trusts the lock; 0 where it never did. */
  get trustedUntil(): number {
    return this.#trustedUntil;
  }

  linkTo(host: Host): Link {
    return this.links.find((link) => link.host === host) as Link;
  }

  noAnswer(reason: string): Error {
    return new this.#library.LockStoreError(reason, KEY, { unknown: true });
  }

  /** Something reaches the process: now, or when it goes on after a pause, or never. */
  handle(run: () => void, isTimer = false): void {
    if (!this.#isAlive) {
      return;
    }
    const { timers, others } = this.#backlog;
    if (this.isPaused || timers.length + others.length > 0) {
      this.#backlog[isTimer ? 'timers' : 'others'].push(run);
    } else {
      run();
    }
  }

  /** Like SIGSTOP. */
  pause(ms: number): void {
    const { timeline } = this.world;
    this.#pausedUntil = Math.max(this.#pausedUntil, timeline.now + ms);
    timeline.after(this.#pausedUntil - timeline.now, () => {
      if (!this.isPaused) {
        const { timers, others } = this.#backlog;
        for (const run of [...timers.splice(0), ...others.splice(0)]) {
          timeline.after(0, () => this.handle(run));
        }
      }
    });
  }

  /** Its machine sleeps: its monotonic clock stands still. */
  async sleepFor(ms: number): Promise<void> {
    this.pause(ms);
    await this.world.play(this.world.timeline.now + ms - 1);
    this.#sleptMs += ms;
  }

  get #monotonic(): number {
    return this.world.timeline.now - this.#sleptMs;
  }

  /** Like SIGKILL. */
  crash(): void {
    this.#isAlive = false;
    this.world.ended(this);
    this.links.forEach((link) => link.close());
  }

  /** Takes the lock again and again. */
  async run(): Promise<void> {
    const { random } = this.world;
    while (this.#isAlive) {
      await this.#sleep(random.between(50, 1_000));
      await this.takeOnce(random.between(0, 2_000));
    }
  }

  /** Takes the lock, and renews it often. */
  async keep(ttlMs: number): Promise<void> {
    const hold = this.#newHold(ttlMs);
    let fence: number | undefined;
    while (this.#isAlive) {
      const sentAt = this.world.timeline.now;
      const answered: Promise<boolean | undefined> = fence
        ? this.store.renew([{ ...hold, fence, by: '' }]).then(([held]) => held)
        : this.store.acquire(hold).then((reply) => (fence = reply.fence) !== undefined);
      if (await answered.catch(() => false)) {
        this.#trustedUntil = leaseDeadline(sentAt, ttlMs);
      }
      await this.#sleep(100);
    }
  }

  /** Takes the lock and releases it, unless that takes too long; whether it was granted. */
  async takeOnce(waitMs: number): Promise<boolean> {
    const { world } = this;
    const { random, timeline, conditions } = world;
    const ttlMs = Math.round(random.pick([0.3, 0.6, 1]) * conditions.longestLeaseMs);
    const giveUpAt = timeline.now + waitMs;
    let hold = this.#newHold(ttlMs);
    for (;;) {
      const sentAt = timeline.now;
      const reply = await this.store.acquire(hold).catch((error: unknown) => {
        if (error instanceof this.#library.LockConfigurationError) {
          world.refused(this);
        }
        return undefined;
      });
      if (reply?.fence !== undefined && timeline.now < leaseDeadline(sentAt, ttlMs)) {
        await this.#keep({ ...hold, fence: reply.fence }, leaseDeadline(sentAt, ttlMs));
        return true;
      }
      if (reply?.fence !== undefined || timeline.now >= giveUpAt) {
        void this.store.release(hold).catch(() => undefined);
        hold = this.#newHold(ttlMs);
      }
      if (timeline.now >= giveUpAt || !this.#isAlive) {
        return false;
      }
      await this.#sleep(random.between(5, 250));
    }
  }

  /** Holds the lock for a while, with renewals. */
  async #keep(hold: HoldRecord, deadline: number): Promise<void> {
    const { world } = this;
    const { random, timeline } = world;
    world.granted(this, hold.fence, deadline);
    const endsAt = timeline.now + hold.ttlMs * random.pick([0.05, 0.3, 0.6, 3, 10]);
    let until = deadline;
    let isLost = false;
    while (!isLost && timeline.now < endsAt) {
      await this.#sleep(Math.min(endsAt - timeline.now, hold.ttlMs / 3));
      const sentAt = timeline.now;
      isLost = sentAt >= until;
      if (!isLost && sentAt < endsAt) {
        const [held] = await this.store.renew([{ ...hold, by: '' }]).catch(() => [undefined]);
        // As core does: an answer that comes when the lease is over changes nothing.
        isLost = held === false || timeline.now >= until;
        if (held && !isLost) {
          until = Math.max(until, leaseDeadline(sentAt, hold.ttlMs));
          world.renewed(this, until);
        }
      }
    }
    world.ended(this);
    await this.store.release(hold).catch(() => undefined);
  }

  #newHold(ttlMs: number): HoldRecord {
    const id = `${this.name}-${this.#holds++}`;
    return {
      key: KEY,
      owner: id,
      id,
      fence: 0,
      fences: 1,
      ttlMs,
      limitMs: commandLimit(ttlMs),
      lingering: false,
      unanswered: true,
      by: this.name,
    };
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((done) => this.#setTimeout(done, ms));
  }

  #setTimeout(run: () => void, ms: number): object {
    const context = new AsyncResource('Timer');
    const dueAt = this.#monotonic + ms;
    const due = (): void => {
      if (event.cancelled) {
        return;
      }
      if (this.#monotonic < dueAt) {
        timeline.after(dueAt - this.#monotonic, () => this.handle(due, true));
      } else {
        context.runInAsyncScope(run);
      }
    };
    const { timeline } = this.world;
    const event = timeline.after(Math.max(1, ms), () => this.handle(due, true));
    return Object.defineProperty(event, 'unref', { value: () => event, configurable: true });
  }
}

/** Nobody is notified of anything. */
class NoWakeups {
  readonly listeners = { onMessage: () => undefined, onForced: () => undefined };
  open(): void {}
  follow(): void {}
  close(): void {}
}
