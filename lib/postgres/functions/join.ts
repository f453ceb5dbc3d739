import type { JoinReply } from '../../kit/lock-table.js';
import { MOST_HOLDS } from '../../kit/protocol.js';
import { LATE } from '../../sql/operation.js';
import { fromNow, IS_LATE, isOne, LATE_REPLY, operation } from './sql-function.js';

/** Reply: 1; 0 where that lock has ended; -1 where it has as many holds as it may; or `late`. */
export const JOIN = operation(
  'join',
  { key: 'text', owner: 'text', fence: 'bigint', hold: 'text', process: 'text', ttlMs: 'bigint', latest: 'bigint' },
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
  at int := array_position(l.holds, _hold);
BEGIN
  IF l.owner IS DISTINCT FROM _owner OR l.fence <> _fence OR SCHEMA.is_done(_hold) THEN
    RETURN 0;
  END IF;
  IF at IS NULL THEN
    at := cardinality(l.holds) + 1;
    IF at > ${MOST_HOLDS} THEN
      RETURN -1;
    END IF;
    IF ${IS_LATE} THEN
      RETURN ${LATE_REPLY};
    END IF;
  END IF;
  l.holds[at] := _hold;
  l.processes[at] := _process;
  l.ends := greatest(l.ends, ${fromNow('_ttl_ms')});
  l.ttl_ms := greatest(l.ttl_ms, _ttl_ms);
  PERFORM SCHEMA.keep(l);
  RETURN 1;
END
`,
  readJoin,
);

/** `join` for a hold that shares the key with one of its owner. The reply is the same. */
export const JOIN_SHARED = operation(
  'join_shared',
  { ...JOIN.parameters, by: 'text', shares: 'bigint' },
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
BEGIN
  IF l.owner IS DISTINCT FROM '' OR l.fence <> _fence OR SCHEMA.is_done(_hold) THEN
    RETURN 0;
  END IF;
  IF NOT EXISTS (SELECT FROM SCHEMA.shared WHERE key = _key AND owner = _owner) THEN
    RETURN 0;
  END IF;
  IF NOT SCHEMA.lengthen(_key, _hold, _owner, _ttl_ms, _by, false) THEN
    IF (SELECT count(*) FROM SCHEMA.shared WHERE key = _key AND owner IS NOT NULL) >= ${MOST_HOLDS} THEN
      RETURN -1;
    END IF;
    IF ${IS_LATE} THEN
      RETURN ${LATE_REPLY};
    END IF;
    l := SCHEMA.enter(l, _hold, _shares, _ttl_ms, _owner, _process, _by);
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN 1;
END
`,
  readJoin,
);

function readJoin(reply: unknown): JoinReply {
  return reply === LATE ? LATE : reply === -1 ? 'full' : isOne(reply) ? 'joined' : 'ended';
}
