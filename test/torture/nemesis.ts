import { setTimeout as sleep } from 'node:timers/promises';
import type { LockStore } from '../../lib/core/seam/lock-store.js';
import type { TcpProxy } from '../support/tcp-proxy.js';
import type { Fleet } from './fleet.js';
import { now, type HistoryFile } from './history.js';
import { FAULTS, lockedRowsOf, type Fault, type FaultName } from './faults.js';
import type { Step } from './plan.js';
import type { Taken, Topology } from './topologies/topology.js';

/** Replies are late by up to so much, in milliseconds. */
const LATEST_MS = 300;
/** How long a fault that takes a lock waits for somebody to have it, in milliseconds. */
const HELD_MS = 300;
/** How far a wall clock jumps at most, in milliseconds, either way. */
const JUMP_MS = 3_600_000;

/** For which part of its fault a listener works: most of a lease. */
const LISTENER = 0.7 / 2.4;
/**
 * After which part of its fault a nested call has asked for more, and by when the first renewal after that has come.
 */
const NESTED = 0.1 / 1.6;
const RENEWED = 0.5 / 1.6;

/** In which part of its fault a machine falls asleep, if it does: it then wakes up without a network. */
const FALLS_ASLEEP = 0.25;

/** Faults in which another server becomes the master. */
const TAKEOVERS: ReadonlySet<FaultName> = new Set(['failover', 'depose', 'isolate']);

/** Causes the faults of a plan, and writes down when. */
export class Nemesis {
  readonly #fleet: Fleet;
  readonly #topology: Topology;
  readonly #store: LockStore;
  readonly #history: HistoryFile;
  /** The targets that a fault strikes at this moment, and that must be free again before the next fault. */
  readonly #struck = new Set<string>();

  constructor(fleet: Fleet, topology: Topology, store: LockStore, history: HistoryFile) {
    this.#fleet = fleet;
    this.#topology = topology;
    this.#store = store;
    this.#history = history;
  }

  /** Resolves when the last fault is over. */
  async run(plan: readonly Step[]): Promise<void> {
    const startedAt = now();
    const running: Promise<void>[] = [];
    let takeover = Promise.resolve();
    for (const [number, step] of plan.entries()) {
      await sleep(Math.max(0, startedAt + step.at - now()));
      if (TAKEOVERS.has(step.fault)) {
        // Nobody knows how long it lasts, and the next one needs a master that has replicas.
        takeover = takeover.then(() => this.#cause(step, number));
      } else {
        running.push(this.#causeAlone(step, number));
      }
    }
    await Promise.all([...running, takeover]);
  }

  /**
   * Leaves a fault out where the one before it is not over. The plan keeps them apart, and on a busy machine they take
   * longer: two faults that change the clocks of one process would undo each other, and two crashes would leave one
   * process behind.
   */
  async #causeAlone(step: Step, number: number): Promise<void> {
    const { fault, target } = step;
    const { place }: Fault = FAULTS[fault];
    const struck = `${place} ${target}`;
    if (place === 'key') {
      await this.#cause(step, number);
    } else if (this.#struck.has(struck)) {
      this.#history.write({ op: 'skip', phase: 'info', fault, target, step: number });
    } else {
      this.#struck.add(struck);
      await this.#cause(step, number);
      this.#struck.delete(struck);
    }
  }

  async #cause(step: Step, number: number): Promise<void> {
    const { fault, target } = step;
    const taken: Taken = {};
    const { place }: Fault = FAULTS[fault];
    const servers = place === 'link' || place === 'servers' ? this.#topology.reach?.(step) : undefined;
    const subject = { fault, target, step: number };
    this.#history.write({ op: 'start', phase: 'info', ...subject, servers });
    try {
      await this.#strike(step, taken);
    } catch (error) {
      // A server that is away cannot be struck once more.
      this.#history.write({ op: 'start', phase: 'fail', ...subject, outcome: String(error) });
    }
    this.#history.write({ op: 'stop', phase: 'info', ...subject, ...taken });
  }

  async #strike(step: Step, taken: Taken): Promise<void> {
    const { fault, target, ms, chance } = step;
    const fleet = this.#fleet;
    const links = this.#linksOf(step);
    switch (fault) {
      case 'pause':
        fleet.pause(target);
        await sleep(ms);
        fleet.resume(target);
        break;
      case 'crash':
        await fleet.kill(target);
        await sleep(ms);
        await fleet.restart(target);
        break;
      case 'block':
        await fleet.ask(target, { type: 'block', ms });
        break;
      case 'wall':
        await fleet.ask(target, { type: 'wall', offsetMs: Math.round((chance - 0.5) * 2 * JUMP_MS) });
        await sleep(ms);
        await fleet.ask(target, { type: 'wall', offsetMs: 0 });
        break;
      case 'listener':
        fleet.send(target, { type: 'listener', ms: LISTENER * ms, isAbort: chance < 0.5 });
        await sleep(ms);
        break;
      case 'nest':
        await this.#resetFirstRenewal(target, ms);
        break;
      case 'sleep':
        await this.#sleep(step);
        break;
      case 'lockRow':
        Object.assign(taken, await this.#lockRow(step));
        break;
      case 'rebirth':
        await this.#bearAnew(step);
        break;
      case 'cut':
        links.forEach((proxy) => proxy.cut());
        break;
      case 'killOnReply':
      case 'dropReplies':
      case 'blackhole':
      case 'refuse':
      case 'deafen':
        await breakLinks(links, fault, ms);
        break;
      case 'killOnRelease':
        links.forEach((proxy) => (proxy.ambush = this.#topology.releaseText));
        await sleep(ms);
        links.forEach((proxy) => (proxy.ambush = undefined));
        break;
      case 'mute':
        await breakLinks(links, 'muteSubscribers', ms);
        break;
      case 'latency':
        links.forEach((proxy) => (proxy.latencyMs = chance * LATEST_MS));
        await sleep(ms);
        links.forEach((proxy) => (proxy.latencyMs = 0));
        break;
      case 'erase':
        await this.#fenceOf(target);
        Object.assign(taken, await this.#topology.strike(step));
        break;
      case 'delete':
        await this.#fenceOf(target);
        Object.assign(taken, await this.#topology.delete(target));
        break;
      case 'force':
        await this.#force(target, taken);
        break;
      case 'forceOld':
        await this.#fenceOf(target);
        fleet.sendToOne(chance, { type: 'forceOld', key: target });
        break;
      default:
        Object.assign(taken, await this.#topology.strike(step));
    }
  }

  /** Resets the first renewal of a nested call's lock; the cut is written down as a fault of its own. */
  async #resetFirstRenewal(target: string, ms: number): Promise<void> {
    const proxies = this.#fleet.proxiesOf(target);
    const reset = new Promise<void>((resolve) => {
      proxies.forEach((proxy) => (proxy.onAmbush = resolve));
    });
    this.#fleet.send(target, { type: 'nest' });
    await sleep(NESTED * ms);
    proxies.forEach((proxy) => (proxy.ambush = this.#topology.renewText));
    await Promise.race([reset, sleep(RENEWED * ms)]);
    this.#history.write({ op: 'start', phase: 'info', fault: 'cut', target });
    proxies.forEach((proxy) => (proxy.ambush = proxy.onAmbush = undefined));
    this.#history.write({ op: 'stop', phase: 'info', fault: 'cut', target });
    await sleep((1 - NESTED - RENEWED) * ms);
  }

  /** Half of the time a machine sleeps, and for the rest it has no network; another worker wants what it has. */
  async #sleep({ target, ms, chance }: Step): Promise<void> {
    const key = `${target} sleeps`;
    const slept = this.#fleet.ask(target, { type: 'sleep', key, ms: ms / 2, before: now() + FALLS_ASLEEP * ms });
    try {
      await this.#fenceOf(key);
      this.#fleet.sendToAnother(target, chance, { type: 'hold', key, ms: ms / 2 });
      await breakLinks(this.#fleet.proxiesOf(target), 'refuse', ms);
    } finally {
      await slept;
    }
  }

  /** One worker has the lock, and others beside it, which have to be renewed meanwhile. */
  async #lockRow(step: Step): Promise<Taken> {
    const { target, ms, chance } = step;
    const [, held] = lockedRowsOf(target);
    const worker = this.#fleet.sendToOne(chance, { type: 'hold', key: held, ms });
    for (const at of [1, 2, 3]) {
      this.#fleet.send(worker, { type: 'hold', key: `${held} ${at}`, ms });
    }
    await this.#fenceOf(held);
    return (await this.#topology.strike(step)) ?? {};
  }

  /** One worker has a lock, and an application that starts when the servers have forgotten it wants it too. */
  async #bearAnew(step: Step): Promise<void> {
    const { ms, chance } = step;
    const key = `reborn at ${step.at}`;
    const holder = this.#fleet.sendToOne(chance, { type: 'hold', key, ms: ms / 2, isFixed: true });
    await this.#fenceOf(key);
    await this.#topology.strike(step, () => this.#fleet.sendToAnother(holder, chance, { type: 'newcomer', key, ms: ms / 4 }));
  }

  /** The fence of a lock, as soon as somebody has it. */
  async #fenceOf(key: string): Promise<number | undefined> {
    const until = now() + HELD_MS;
    let fence: number | undefined;
    while (fence === undefined && now() < until) {
      // Servers that do not answer may do so a moment later.
      fence = (await this.#store.operator?.inspect(key).catch(() => null))?.fence;
      await sleep(fence === undefined ? 5 : 0);
    }
    return fence;
  }

  async #force(key: string, taken: Taken): Promise<void> {
    const fence = await this.#fenceOf(key);
    if (fence !== undefined) {
      // Also where the answer is lost.
      taken.fence = fence;
    }
    const isForced = fence !== undefined && (await this.#store.operator?.forceRelease(key, fence));
    // Some servers of a quorum may have freed it though most had not got it.
    if (fence === undefined || (!isForced && this.#topology.spare === 0)) {
      taken.outcome = 'nothing';
    }
  }

  #linksOf(step: Step): readonly TcpProxy[] {
    if (FAULTS[step.fault].place !== 'link') {
      return [];
    }
    const reach = this.#topology.reach?.(step);
    return this.#fleet.proxiesOf(step.target).filter((_, at) => reach?.includes(at) ?? true);
  }
}

async function breakLinks(links: readonly TcpProxy[], mode: TcpProxy['mode'], ms: number): Promise<void> {
  links.forEach((proxy) => (proxy.mode = mode));
  await sleep(ms);
  links.forEach((proxy) => (proxy.mode = 'pass'));
}
