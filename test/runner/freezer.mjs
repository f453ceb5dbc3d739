// Lets each process of a family stand still at random, as on a machine that is busy with other things: about once a
// second, for 50 to 500 ms.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SEARCH_MS = 250;
const TICK_MS = 10;
/** Between the end of one stop of a process and the beginning of its next. */
const [SHORTEST_RUN_MS, LONGEST_RUN_MS] = [250, 1_250];
const [SHORTEST_STOP_MS, LONGEST_STOP_MS] = [50, 500];

/**
 * Freezes the descendants of `root`, and processes that share a session with one, until `stop()`. A process for which
 * there is a file in `stoppedByTests` was stopped by its test, which lets it go on itself (see
 * test/support/stopping.ts).
 */
export class Freezer {
  #root;
  #stoppedByTests;
  #random;
  /** By process: when its next stop begins, or when the one that it is in ends. */
  #running = new Map();
  #frozen = new Map();
  #sessions = new Set();
  #timers = [];
  count = 0;

  constructor({ root, stoppedByTests, seed }) {
    this.#root = root;
    this.#stoppedByTests = stoppedByTests;
    this.#random = randomFrom(seed);
    this.#search();
    this.#timers = [setInterval(() => this.#search(), SEARCH_MS), setInterval(() => this.#tick(), TICK_MS)];
  }

  stop() {
    this.#timers.forEach((timer) => clearInterval(timer));
    for (const pid of this.#frozen.keys()) {
      this.#goOn(pid);
    }
  }

  #between(shortest, longest) {
    return shortest + this.#random() * (longest - shortest);
  }

  #search() {
    const now = performance.now();
    const found = this.#family();
    for (const pid of found) {
      if (!this.#running.has(pid) && !this.#frozen.has(pid)) {
        this.#running.set(pid, now + this.#between(0, LONGEST_RUN_MS));
      }
    }
    for (const pid of this.#running.keys()) {
      if (!found.has(pid)) {
        this.#running.delete(pid);
      }
    }
  }

  #tick() {
    const now = performance.now();
    for (const [pid, until] of this.#frozen) {
      if (now >= until && this.#goOn(pid)) {
        this.#running.set(pid, now + this.#between(SHORTEST_RUN_MS, LONGEST_RUN_MS));
      }
    }
    for (const [pid, at] of this.#running) {
      if (now >= at) {
        this.#running.delete(pid);
        if (!this.#isStoppedByTest(pid) && signal(pid, 'SIGSTOP')) {
          this.#frozen.set(pid, now + this.#between(SHORTEST_STOP_MS, LONGEST_STOP_MS));
          this.count++;
        }
      }
    }
  }

  /** False where its test has stopped it at the same moment: it stays frozen, and is looked at again. */
  #goOn(pid) {
    const isOurs = !this.#isStoppedByTest(pid);
    if (isOurs && signal(pid, 'SIGCONT') && this.#isStoppedByTest(pid)) {
      signal(pid, 'SIGSTOP');
      return false;
    }
    this.#frozen.delete(pid);
    return true;
  }

  #isStoppedByTest(pid) {
    return existsSync(join(this.#stoppedByTests, String(pid)));
  }

  /** Servers may leave the session of their suite, and children may outlive their parent. */
  #family() {
    const all = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => statusOf(Number(name)));
    const family = new Set([this.#root]);
    for (let size = 0; size !== family.size;) {
      size = family.size;
      for (const { pid, parent, session } of all) {
        if (family.has(pid) || family.has(parent) || this.#sessions.has(session)) {
          family.add(pid);
          this.#sessions.add(session);
        }
      }
    }
    family.delete(process.pid);
    return family;
  }
}

function statusOf(pid) {
  try {
    // The name of the program, in parentheses, may contain anything.
    const [, parent, , session] = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    return { pid, parent, session };
  } catch {
    return { pid };
  }
}

function signal(pid, name) {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** Mulberry32, by Tommy Ettinger: the same numbers for the same seed. */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
