import { AsyncLocalStorage } from 'node:async_hooks';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A process that is larger has kept too much of its suites. */
const MOST_BYTES = 400 * 2 ** 20;
/** How often a suite is looked at that has just ended, 10 ms apart: what it has closed may need a moment. */
const MOST_LOOKS = 10;

let before;

/**
 * The storages that a suite has made. Until Node 22, each promise passes on the value of every storage, also when its
 * suite has ended.
 */
const storages = new Set();
const { _enable: enable } = AsyncLocalStorage.prototype;
if (enable) {
  // oxlint-disable-next-line no-underscore-dangle -- no other method sees all of them
  AsyncLocalStorage.prototype._enable = function enableAndNote() {
    storages.add(this);
    return enable.call(this);
  };
}

/** Notes what there is before the first suite. */
export function noteRests() {
  before = count();
}

/**
 * Whether the last suite has left nothing behind in this process, and no process of its group, so that the next one may
 * run here.
 */
export async function leftNothing() {
  storages.forEach((storage) => storage.disable());
  storages.clear();
  for (let looks = 1; ; looks++) {
    const { resources, listeners } = count();
    if (resources <= before.resources && listeners <= before.listeners) {
      return process.memoryUsage.rss() < MOST_BYTES && isAlone();
    }
    if (looks === MOST_LOOKS) {
      return false;
    }
    await sleep(10, undefined, { ref: false });
  }
}

function count() {
  const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);
  return { resources: process.getActiveResourcesInfo().length, listeners };
}

/** Says no where the kernel does not show its processes. */
function isAlone() {
  try {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return pids.every((pid) => Number(pid) === process.pid || groupOf(pid) !== process.pid);
  } catch {
    return false;
  }
}

function groupOf(pid) {
  try {
    // The name of the program, in parentheses, may contain anything.
    return Number(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ')[2]); // prettier-ignore
  } catch {
    return undefined;
  }
}
