import { inflict } from './faults.js';
import { History } from './history.js';
import { Network } from './network.js';
import { Process } from './process.js';
import { Random } from '../support/random.js';
import { KEY, Server } from './server.js';
import { Timeline } from './timeline.js';

/** What a process does; a mutant does one of them wrong. */
const RULES = {
  /** A turn that arrives while an attempt is in flight makes it be repeated. */
  remembersTurns: true,
  /** A busy lock is looked at again, though no message came. */
  rechecks: true,
  /** A grant that nobody wants any more is released. */
  releasesUnwanted: true,
  /** A lease is counted from the sending, not from the reply. */
  countsFromSending: true,
};

export type Rules = typeof RULES;

const TICK_MS = 100;
/** For how long nothing happens before the end is checked: the longest lease that is asked for, and a claim window. */
const REST_MS = 9_200;
const LONGEST_RUN_MS = 600_000;

/** One random run: what it was made of, and what went wrong, if anything did. */
export class Simulation {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly history: History;
  readonly network: Network;
  readonly server: Server;
  readonly rules: Rules;
  readonly processes: Process[] = [];
  /** The lease that most callers ask for. */
  readonly ttlMs: number;
  #arriving = 0;

  constructor(seed: number, rules?: Partial<Rules>, trace?: string[]) {
    this.random = new Random(seed);
    this.history = new History(this, trace);
    this.network = new Network(this);
    this.server = new Server(this);
    this.rules = { ...RULES, ...rules };
    this.ttlMs = this.random.whole(300, 2_000);
    for (let count = this.random.whole(2, 4); count > 0; count--) {
      this.processes.push(new Process(this, `p${count}`, this.random.between(0.996, 1.004)));
    }
    this.#bringCallers();
    inflict(this);
  }

  /** Throws what went wrong. */
  run(): void {
    const { timeline } = this;
    while (this.#arriving > 0 || !this.processes.every(({ isQuiet }) => isQuiet)) {
      timeline.runUntil(timeline.now + TICK_MS);
      this.#check();
      if (timeline.now > LONGEST_RUN_MS) {
        throw new Error('a live waiter was never served');
      }
    }
    this.#checkRest();
  }

  /** Since when a process waits for the server that could be served. */
  get waitingSince(): number | undefined {
    let earliest: number | undefined;
    for (const { line, soundSince } of this.processes) {
      if (soundSince !== undefined && line.waitingSince !== undefined) {
        earliest = Math.min(earliest ?? Infinity, Math.max(line.waitingSince, soundSince));
      }
    }
    return earliest;
  }

  #bringCallers(): void {
    const { random } = this;
    const spanMs = random.pick([20, 500, 4_000]);
    const longShare = random.pick([0.05, 0.3, 0.9]);
    for (const process of this.processes) {
      for (let count = random.whole(1, random.pick([6, 12, 20])); count > 0; count--) {
        const ttlMs = random.chance(0.7) ? this.ttlMs : random.whole(300, 2_000);
        const sectionMs = random.chance(longShare) ? random.between(0, ttlMs * 2) : random.between(0, 20);
        const waitMs = random.pick([0, random.between(1, 30), random.between(1, 3_000), Infinity, Infinity]);
        this.#arriving++;
        this.timeline.after(50 + random.between(0, spanMs), () => {
          this.#arriving--;
          process.handle(() => process.line.arrive({ waitMs, ttlMs, sectionMs }));
        });
      }
    }
  }

  /** Whatever is held, somebody knows of. */
  #check(): void {
    const isHeld = this.server.look() !== null;
    const { hold } = this.history.last;
    const isKnown = () => this.processes.some(({ releasing, line }) => releasing.has(hold) || line.caresFor(hold));
    if (isHeld && this.history.faults.length === 0 && !isKnown()) {
      throw new Error(`an orphan: ${hold} is granted, and nobody knows of it`);
    }
  }

  /** Nothing is left but the places of the dead, and of those whose goodbye was lost: each is given its turn once. */
  #checkRest(): void {
    const { timeline, history, server } = this;
    const places = history.faults.length === 0 ? 0 : history.faults.length + this.processes.length + 1;
    for (let probes = 0; probes <= places; probes++) {
      timeline.runUntil(timeline.now + REST_MS);
      if (
        server.acquire({ key: KEY, owner: '?', id: '?', fence: 0, ttlMs: 100, limitMs: 25, lingering: false, by: '?' }, '?').fence !==
        undefined
      ) {
        return;
      }
    }
    throw new Error('not free at the end');
  }
}
