import { floor } from './floor.mjs';
import { redisSemaphore } from './redis-semaphore.mjs';
import { redlock } from './redlock.mjs';
import { leanRedlockUniversal, redlockUniversal } from './redlock-universal.mjs';
import { thisLibrary } from './this-library.mjs';

export { floor, thisLibrary };

export const PEERS = [redisSemaphore, redlock, redlockUniversal, leanRedlockUniversal];

/** Those that differ in how they wait. */
export const WAITING_PEERS = [redisSemaphore, redlock, redlockUniversal];

export function subjectNamed(name) {
  return [thisLibrary, floor, ...PEERS].find((subject) => subject.name === name);
}
