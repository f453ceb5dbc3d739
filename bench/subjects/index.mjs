import { floor } from './floor.mjs';
import { mysql, mysqlFloor, mysqlThatPolls } from './mysql.mjs';
import { postgres, postgresFloor } from './postgres.mjs';
import { quorum, quorumFloor } from './quorum.mjs';
import { redisSemaphore } from './redis-semaphore.mjs';
import { redlock } from './redlock.mjs';
import { leanRedlockUniversal, redlockUniversal } from './redlock-universal.mjs';
import { thisLibrary } from './this-library.mjs';

export { floor, mysql, mysqlFloor, mysqlThatPolls, postgres, postgresFloor, quorum, quorumFloor, thisLibrary };

export const PEERS = [redisSemaphore, redlock, redlockUniversal, leanRedlockUniversal];

/** Those that differ in how they wait. */
export const WAITING_PEERS = [redisSemaphore, redlock, redlockUniversal];

export function subjectNamed(name) {
  return [thisLibrary, quorum, postgres, mysql, mysqlThatPolls, ...PEERS].find((subject) => subject.name === name);
}
