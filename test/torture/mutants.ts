import type { Edit } from '../support/defective.js';
import type { FaultName } from './faults.js';
import type { TopologyName } from './topologies/all.js';

/** A deliberate defect of the library, which a run of the torture has to notice. */
export interface Mutant {
  readonly defect: string;
  readonly edits: readonly Edit[];
  /** The faults that bring it to light soonest. */
  readonly nemesis: readonly FaultName[];
  readonly topology: TopologyName;
  /** The check that has to fail. */
  readonly caughtBy: readonly string[];
}

const SCRIPTS = 'lib/redis/scripts/scripts.ts';
const LUA = 'lib/redis/scripts/lua.ts';
const COMMANDS = 'lib/redis/scripts/redis-commands.ts';
const FUNCTIONS = 'lib/postgres/functions';
const PROCEDURES = 'lib/mysql/procedures';
const SHORT_CUTS = 'lib/mysql/short-cuts.ts';
const WAKEUPS = 'lib/redis/wakeups.ts';

export const MUTANTS: Readonly<Record<string, Mutant>> = {
  counters: {
    defect: 'entries are counted (HINCRBY), not named: a command that is sent twice counts twice',
    topology: 'single',
    nemesis: ['killOnRelease'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [
      [LUA, `'by', by, hold, process)`, `'by', by, 'hold:n', 1)`],
      [LUA, `'by', hold, 'turn')`, `'by', 'hold:n', 'turn')`],
      [SCRIPTS, `redis.call('HSET', lock, hold, process)`, `redis.call('HINCRBY', lock, 'hold:n', 1)`],
      [SCRIPTS, `'fence', 'ttl', hold)`, `'fence', 'ttl', 'hold:n')`],
      [
        LUA,
        `local answer = redis.call('HDEL', lock, hold)`,
        `local answer = 'hold:' .. (redis.call('HGET', lock, 'owner') or '') == hold and 1 or 0
  if answer == 1 and redis.call('HINCRBY', lock, 'hold:n', -1) <= 0 then
    redis.call('HDEL', lock, 'hold:n')
  end`,
      ],
      [
        COMMANDS,
        `release({ key, id, owner, shares, unanswered }: HoldRecord, done = id)`,
        `release({ key, id: done, owner: id, owner, shares, unanswered }: HoldRecord)`,
      ],
      [COMMANDS, `released: fieldOf(id)`, `released: fieldOf(hold.owner)`],
    ],
  },
  'incr-fences': {
    defect: 'fences are counted (INCR), and begin anew when the counter is lost',
    topology: 'single',
    nemesis: ['flush', 'restart', 'cut'],
    caughtBy: ['fences rise'],
    edits: [
      [
        LUA,
        `local last = redis.call('GETSET', counter, more == 0 and wanted or string.format('%.0f', wanted + more))`,
        `wanted = string.format('%.0f', redis.call('INCRBY', counter, fences) - more) local last = nil`,
      ],
      [LUA, `if given ~= wanted then`, `if true then`],
    ],
  },
  'deadline-from-reply': {
    defect: 'a deadline is counted from the reply',
    topology: 'single',
    nemesis: ['latency', 'pause'],
    caughtBy: ['no overlap'],
    edits: [
      ['lib/core/leases/attempt.ts', `fence: reply.fence, sent }`, `fence: reply.fence, sent: momentOf(clock) }`],
      ['lib/core/leases/attempt.ts', `store.expires && isOver`, `false && isOver`],
      ['lib/core/leases/renewer.ts', `records[index] as HoldRecord, sent)`, `records[index] as HoldRecord, momentOf(this.#clock))`],
    ],
  },
  'renews-anything': {
    defect: 'a renewal does not look whose lock it is',
    topology: 'single',
    nemesis: ['flush', 'delete', 'cut'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [[SCRIPTS, `if held[1] == owner and held[2] == fence and held[4] then`, `if held[1] then`]],
  },
  'mixed-replies': {
    defect: 'the replies of a batch are mixed up',
    topology: 'single',
    nemesis: ['latency', 'pause'],
    caughtBy: ['no overlap', 'fences rise', 'losses are notified'],
    edits: [['lib/kit/batches.ts', 'pass(replies[at], asker)', 'pass(replies[replies.length - 1 - at], asker)']],
  },
  'endless-block': {
    defect: 'a lease serves calls with fences that it did not reserve',
    topology: 'single',
    nemesis: ['pause'],
    caughtBy: ['fences rise'],
    edits: [
      ['lib/core/leases/hold.ts', `this.#fence + 1 < this.#storedFence + this.#fences`, `true`],
      [
        'lib/core/leases/hold.ts',
        `this.#fence = before.#fence + (this.shares === undefined ? 1 : 0);`,
        `this.#fence = before.#fence + 1e9;`,
      ],
    ],
  },
  'no-mark': {
    defect: 'a release leaves no mark: sent twice, it answers that the lock was gone',
    topology: 'cluster',
    nemesis: ['killOnRelease', 'cut'],
    caughtBy: ['losses are notified'],
    edits: [[LUA, `redis.call('SET', done, answer, 'PX', stays)`, ``]],
  },
  'wakes-nobody': {
    defect: 'a process queues to be notified before its subscription stands, and does not look for itself',
    topology: 'single',
    nemesis: ['deafen'],
    caughtBy: ['turns are in order', 'no turn is missed'],
    edits: [
      [WAKEUPS, `this.#subscriber?.acknowledged === true && !this.#isCluster`, `!this.#isCluster`],
      ['lib/kit/rechecks.ts', `rank < 2 || !subscription?.acknowledged || this.#places.get(place) === 'lost'`, `rank < 2`],
    ],
  },
  'no-recheck': {
    defect: 'nobody looks again: a message that is lost is never made good',
    topology: 'single',
    nemesis: ['mute'],
    caughtBy: ['no turn is missed'],
    edits: [['lib/core/entering/contender.ts', `return now + Math.min(`, `return busy ? Infinity : now + Math.min(`]],
  },
  'wall-clock': {
    defect: 'deadlines are read from the wall clock',
    topology: 'single',
    nemesis: ['wall', 'blackhole', 'pause'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [['lib/core/seam/time.ts', `performance.now()`, `Date.now()`]],
  },
  'deletes-anything': {
    defect: 'a release deletes the lock, whoever has it',
    topology: 'single',
    nemesis: ['pause', 'delete', 'cut'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [[LUA, `local answer = redis.call('HDEL', lock, hold)`, `local answer = redis.call('DEL', lock)`]],
  },
  siblings: {
    defect: 'children that were started in parallel run at the same time',
    topology: 'single',
    nemesis: ['cut'],
    caughtBy: ['no fenced update lost'],
    edits: [
      [
        'lib/core/calls/call-stack.ts',
        `return (this.#isParallel || top === undefined || call.isInside(top)) && !this.#isKeptFrom(call);`,
        `return true;`,
      ],
    ],
  },
  silent: {
    defect: 'a call whose lease was lost resolves as if nothing had happened',
    topology: 'single',
    nemesis: ['pause', 'delete', 'force'],
    caughtBy: ['losses are notified'],
    edits: [
      ['lib/core/entering/body-run.ts', `const { loss } = frame;`, `const loss = undefined as LockLostError | undefined;`],
      ['lib/core/entering/frame.ts', `this.#controller?.abort(loss)`, `undefined`],
      ['lib/core/entering/frame.ts', `this.#controller.abort(this.#notified)`, `void 0`],
    ],
  },
  lifo: {
    defect: 'whoever comes last is served first',
    topology: 'single',
    nemesis: ['wall'],
    caughtBy: ['turns are in order'],
    edits: [
      [
        LUA,
        `math.floor(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0) + 1`,
        `math.floor(redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2] or 0) - 1`,
      ],
    ],
  },
  'joins-anything': {
    defect: 'a ticket of a lock that has ended makes it anew',
    topology: 'single',
    nemesis: ['pause', 'latency'],
    caughtBy: ['tickets enter running locks', 'fences rise'],
    edits: [
      [
        SCRIPTS,
        `if held[1] ~= owner or held[2] ~= fence or redis.call('EXISTS', done) == 1 then`,
        `if not held[1] then
  redis.call('DEL', lock)
  redis.call('HSET', lock, 'owner', owner, 'fence', fence, 'ttl', ttl, 'since', '0', 'by', '')
  held[3] = ttl
elseif held[1] ~= owner then`,
      ],
    ],
  },
  'forces-anything': {
    defect: 'a forced release takes the lock at any fence',
    topology: 'single',
    nemesis: ['forceOld'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [
      [
        SCRIPTS,
        `if redis.call('HGET', lock, 'fence') ~= fence then`,
        `fence = redis.call('HGET', lock, 'fence')
if not fence then`,
      ],
    ],
  },
  'one-leaves-all': {
    defect: 'a lock is free when the first hold has left it, not the last',
    topology: 'single',
    nemesis: ['latency'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [[LUA, 'return answer, answer == 1 and ${HOLDS} == 0', `return answer, answer == 1`]],
  },
  'keeps-turn': {
    defect: 'who loses a lease keeps the turn of its process',
    topology: 'single',
    nemesis: ['delete', 'force'],
    caughtBy: ['no turn is missed'],
    edits: [['lib/core/leases/leases.ts', `      lines.endTurn(line);\n    }\n    return loss;`, `    }\n    return loss;`]],
  },
  'waits-on': {
    defect: 'a caller goes on when its time is up',
    topology: 'single',
    nemesis: ['cut'],
    caughtBy: ['calls end as they may'],
    edits: [['lib/core/entering/contender.ts', `clock.monotonic() >= acquisition.giveUpAt`, `acquisition.giveUpAt < 0`]],
  },
  'enters-anywhere': {
    defect: 'whoever calls in the process of a holder enters its lock',
    topology: 'single',
    nemesis: ['cut'],
    caughtBy: ['fences rise'],
    edits: [
      [
        'lib/core/entering/enclosing-locks.ts',
        `  return undefined;
}

const isPermit`,
        `  return leases.running.find((lease) => lease.key === key);
}

const isPermit`,
      ],
    ],
  },
  'no-expiry': {
    defect: 'a lock has no expiry, and stays when its holder crashes',
    topology: 'single',
    nemesis: ['crash'],
    caughtBy: ['no turn is missed'],
    edits: [
      [LUA, `if redis.pcall('PEXPIRE', lock, ttl) ~= 1 then`, `if false then`],
      [LUA, `if left < 0 or left > most then`, `if false then`],
    ],
  },
  'leads-twice': {
    defect: 'a candidate stands by again while its code of before still runs',
    topology: 'single',
    nemesis: ['pause', 'flush', 'force'],
    caughtBy: ['one leads'],
    edits: [['lib/leader/leadership.ts', `    await this.#code;\n`, ``]],
  },
  'stays-away': {
    defect: 'a leader that lost its lease does not stand by again',
    topology: 'single',
    nemesis: ['pause', 'flush', 'force'],
    caughtBy: ['one leads'],
    edits: [['lib/leader/candidacy.ts', `reason !== 'returned') {\n      return 0;`, `reason !== 'returned') {\n      return 1e9;`]],
  },
  'two-of-five': {
    defect: 'two of five servers are taken for a majority',
    topology: 'quorum',
    nemesis: ['pause', 'cut'],
    caughtBy: ['no overlap', 'fences rise'],
    edits: [['lib/quorum/quorum.ts', `majorityAmong(origins.length)`, `majorityAmong(origins.length) - 1`]],
  },
  unsettled: {
    defect: 'a grant has the highest fence of its votes, which no majority has stored',
    topology: 'quorum',
    nemesis: ['wall', 'cut'],
    caughtBy: ['fences rise', 'losses are notified', 'tickets enter running locks'],
    edits: [
      [
        'lib/quorum/votes/ballot.ts',
        `      this.#settle();
    } else if`,
        `      this.#outcome = 'granted';
      this.#fence = Math.max(...this.#stored.values());
      this.#resolve({ fence: this.#fence });
      this.#stored.clear();
    } else if`,
      ],
    ],
  },
  'frees-anything': {
    defect: 'a release frees the lock, whoever has it',
    topology: 'postgres',
    nemesis: ['pause', 'delete', 'erase', 'cut'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [[`${FUNCTIONS}/release.ts`, `WHERE key = _key AND holds = ARRAY[_hold] AND ends`, `WHERE key = _key AND ends`]],
  },
  'counts-fences': {
    defect: 'fences are counted, and begin anew when the row is gone',
    topology: 'postgres',
    nemesis: ['erase', 'cut'],
    caughtBy: ['fences rise'],
    edits: [
      [`${FUNCTIONS}/acquire.ts`, `greatest(fence + \${MOST_FENCES}, \${CLOCK})`, `fence + \${MOST_FENCES}`],
      [`${FUNCTIONS}/grant.ts`, `greatest(l.fence + \${MOST_FENCES}, \${CLOCK})`, `l.fence + \${MOST_FENCES}`],
    ],
  },
  'renews-any-row': {
    defect: 'a renewal does not look whose row it is',
    topology: 'postgres',
    nemesis: ['erase', 'delete', 'cut', 'pause'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [[`${FUNCTIONS}/renew.ts`, `AND owner = _owners[i] AND fence = _fences[i] AND _holds[i] = ANY (holds) AND ends`, `AND ends`]],
  },
  'last-comes-first': {
    defect: 'the last in the queue of a row is served first',
    topology: 'postgres',
    nemesis: ['wall'],
    caughtBy: ['turns are in order'],
    edits: [
      [`${FUNCTIONS}/queue.ts`, `place := l.queue[1];`, `place := l.queue[cardinality(l.queue)];`],
      [`${FUNCTIONS}/acquire.ts`, `l.queue[1] IS DISTINCT FROM _place`, `l.queue[cardinality(l.queue)] IS DISTINCT FROM _place`],
    ],
  },
  unlogged: {
    defect: 'locks are not written down, and a crash of the server takes them away',
    topology: 'postgres',
    nemesis: ['recover', 'pause'],
    caughtBy: ['no overlap', 'losses are notified', 'fences rise'],
    edits: [['lib/postgres/tables.ts', `CREATE TABLE IF NOT EXISTS SCHEMA.lease`, `CREATE UNLOGGED TABLE IF NOT EXISTS SCHEMA.lease`]],
  },
  'frees-any-row': {
    defect: 'the short way to release a row frees it, whoever has it',
    topology: 'mysql',
    nemesis: ['pause', 'delete', 'erase', 'cut'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [[SHORT_CUTS, `AND owner = ? AND holds = ? AND ends`, `AND (owner = ? OR TRUE) AND (holds = ? OR TRUE) AND ends`]],
  },
  'numbers-rows': {
    defect: 'the fences of a row are counted, and begin anew when the row is gone',
    topology: 'mysql',
    nemesis: ['erase', 'cut'],
    caughtBy: ['fences rise'],
    edits: [
      [SHORT_CUTS, `greatest(fence + \${MOST_FENCES}, \${NOW})`, `fence + \${MOST_FENCES}`],
      [SHORT_CUTS, `SELECT ?, ?, last_insert_id(\${NOW})`, `SELECT ?, ?, last_insert_id(1)`],
      [`${PROCEDURES}/acquire.ts`, `greatest(l_fence + \${MOST_FENCES}, now_us)`, `l_fence + \${MOST_FENCES}`],
    ],
  },
  'renews-what-is-there': {
    defect: 'a renewal does not look who has the row',
    topology: 'mysql',
    nemesis: ['erase', 'delete', 'cut', 'pause'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [
      [`${PROCEDURES}/renew.ts`, `owner = r_owner AND fence = r_fence AND locate(concat(';', r_hold, '='), holds) > 0 AND ends`, `ends`],
    ],
  },
  'last-is-first': {
    defect: 'the place that joined the queue of a row last is served first',
    topology: 'mysql',
    nemesis: ['wall'],
    caughtBy: ['turns are in order'],
    edits: [
      [
        `${PROCEDURES}/queue.ts`,
        `SET entry = substring_index(substring(l_queue, 2), ';', 1);`,
        `SET entry = substring_index(left(l_queue, length(l_queue) - 1), ';', -1);`,
      ],
      [`${PROCEDURES}/queue.ts`, `substring(l_queue, length(entry) + 2)`, `left(l_queue, length(l_queue) - length(entry) - 1)`],
    ],
  },
  'unlocked-rows': {
    defect: 'an operation reads its row without locking it, and another one writes it meanwhile',
    topology: 'mysql',
    nemesis: ['cut'],
    caughtBy: ['no overlap', 'losses are notified', 'fences rise', 'no turn is missed'],
    edits: [[`${PROCEDURES}/lease-row.ts`, `WHERE name = _key FOR UPDATE;`, `WHERE name = _key;`]],
  },
  'first-frees-row': {
    defect: 'a row is free when the first hold has left it, not the last',
    topology: 'mysql',
    nemesis: ['latency'],
    caughtBy: ['no overlap', 'losses are notified'],
    edits: [[`${PROCEDURES}/release.ts`, `is_last = l_holds IS NULL`, `is_last = TRUE`]],
  },
  'stays-forever': {
    defect: 'the lock of a row stays when its lease is over',
    topology: 'mysql',
    nemesis: ['crash'],
    caughtBy: ['no turn is missed', 'processes live and end'],
    edits: [
      [`${PROCEDURES}/lease-row.ts`, `IF l_ends <= now_us THEN`, `IF FALSE THEN`],
      [SHORT_CUTS, '`ends <= ${NOW} AND queue', '`owner IS NULL AND queue'],
    ],
  },
};
