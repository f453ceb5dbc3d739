import { PEER_DECORATORS } from './decorators.mjs';
import { floor } from './floor.mjs';
import { mysql, mysqlFloor, mysqlThatPolls } from './mysql.mjs';
import { ENOUGH, FEW, readers } from './permits.mjs';
import { postgres, postgresFloor } from './postgres.mjs';
import { quorum, quorumFloor } from './quorum.mjs';
import { redisSemaphore } from './redis-semaphore.mjs';
import { redlock } from './redlock.mjs';
import { leanRedlockUniversal, redlockUniversal } from './redlock-universal.mjs';
import { byNodeRedis, handles, thisLibrary, withLock } from './this-library.mjs';
import { polling, TRANSFERRING } from './transferring.mjs';

export {
  byNodeRedis,
  ENOUGH,
  FEW,
  floor,
  mysql,
  mysqlFloor,
  mysqlThatPolls,
  PEER_DECORATORS,
  polling,
  postgres,
  postgresFloor,
  quorum,
  quorumFloor,
  readers,
  thisLibrary,
  TRANSFERRING,
};

/** By hand: an acquire, the work and a release. */
export const PEERS = [redisSemaphore, redlock, redlockUniversal, leanRedlockUniversal];

/** Those that differ in how they wait. */
export const WAITING_PEERS = [redisSemaphore, redlock, redlockUniversal];

/** With those that have a decorator. */
export const ALL_PEERS = [...PEERS, ...PEER_DECORATORS];

/** This library, used in other ways. */
export const VARIANTS = [byNodeRedis, withLock, handles];

/** Those whose locked calls on Redis are measured. */
export const CALLED = [thisLibrary, ...VARIANTS, floor, ...ALL_PEERS];

export function subjectNamed(name) {
  return [...CALLED, ...TRANSFERRING, ...ENOUGH, ...FEW, readers, quorum, postgres, mysql, mysqlThatPolls].find(
    (subject) => subject.name === name,
  );
}
