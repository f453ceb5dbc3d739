// Watches whether the processes of a suite were stopped: by the kernel, which counts for each process how long it
// waited for a processor, or by somebody who stops the machine or the whole process, which shows as a gap between two
// ticks of this thread.
import { readdirSync, readFileSync } from 'node:fs';
import { workerData as cells } from 'node:worker_threads';

const [REQUEST, LONGEST] = [0, 1];
const [NOTHING, START] = [0, 1];
const TICK_MS = 5;
/** Timers are that late on any machine. */
const LATE_MS = 10;
const LOOK_MS = 100;
const SECOND_MS = 1_000;
/** Processes of the suite come and go; every half second is soon enough to find them. */
const LOOKS_BETWEEN_SEARCHES = 5;
const HZ_MS = 10;

const suite = process.pid;
const parent = process.ppid;

let pids = [];
/** The count of each source at the last look, and by how much it grew in the looks of the last second. */
let counted = new Map();
let growth = new Map();
let looks = 0;
let gapsMs = 0;
let tickedAt = performance.now();
let lookedAt = tickedAt;

/** The milliseconds that each source has counted so far. */
function count() {
  const counts = new Map([['gaps', gapsMs]]);
  const stolen = read('/proc/stat')?.match(/^cpu(?: +\d+){7} +(\d+)/)?.[1];
  if (stolen !== undefined) {
    counts.set('stolen', Number(stolen) * HZ_MS);
  }
  for (const pid of pids) {
    // Time on a processor and time waited for one, in nanoseconds.
    const waited = read(`/proc/${pid}/schedstat`)?.split(' ')[1];
    if (waited !== undefined) {
      counts.set(pid, Number(waited) / 1e6);
    }
  }
  return counts;
}

/** The counts of before do not concern the test that starts. */
function start() {
  counted = count();
  growth = new Map();
  Atomics.store(cells, LONGEST, 0);
}

function look(now) {
  if (looks++ % LOOKS_BETWEEN_SEARCHES === 0) {
    pids = findProcesses();
  }
  const before = counted;
  counted = count();
  const next = new Map();
  for (const [source, ms] of counted) {
    const grown = [...(growth.get(source) ?? []), { at: now, ms: ms - (before.get(source) ?? ms) }].filter(
      ({ at }) => now - at < SECOND_MS,
    );
    next.set(source, grown);
    const stoppedMs = Math.round(grown.reduce((sum, each) => sum + each.ms, 0));
    if (stoppedMs > Atomics.load(cells, LONGEST)) {
      Atomics.store(cells, LONGEST, stoppedMs);
    }
  }
  growth = next;
}

/** The processes of this one's group and their children: the servers of PostgreSQL start groups of their own. */
function findProcesses() {
  const found = [];
  const group = new Set([suite]);
  for (const name of list('/proc').filter((each) => /^\d/.test(each))) {
    // The name of the program, in parentheses, may contain anything.
    const [, parentOf, groupOf] = (read(`/proc/${name}/stat`)?.replace(/^.*\) /s, '') ?? '').split(' ').map(Number);
    if (groupOf === suite || group.has(parentOf)) {
      group.add(Number(name));
      found.push(Number(name));
    }
  }
  return found;
}

function read(file) {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}

function list(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

setInterval(() => {
  const now = performance.now();
  const lateMs = now - tickedAt - TICK_MS;
  tickedAt = now;
  gapsMs += lateMs > LATE_MS ? lateMs : 0;
  // Where the process of jest was killed, nobody else ends this one.
  if (process.ppid !== parent) {
    process.kill(-suite, 'SIGKILL');
  }
  const request = Atomics.load(cells, REQUEST);
  if (request === START) {
    start();
  } else if (request !== NOTHING || now - lookedAt >= LOOK_MS) {
    lookedAt = now;
    look(now);
  }
  Atomics.compareExchange(cells, REQUEST, request, NOTHING);
}, TICK_MS);
