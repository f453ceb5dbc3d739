import { IS_LATE, isOne, LATE_REPLY, operation } from './sql-function.js';
import { ATTEMPT, readAnyAttempt } from './acquire.js';

/** Reply: a list of the replies of `release` and `acquire`. */
export const EXCHANGE = operation(
  'exchange',
  { ...ATTEMPT, released: 'text', releasedOwner: 'text', unanswered: 'boolean', mayOvertake: 'boolean', latest: 'bigint' },
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
  outcome record;
  may_grant boolean;
  reply json;
BEGIN
  outcome := SCHEMA.take_out(l, _released, _released_owner, _unanswered);
  l := outcome.l;
  -- A command that arrives late must not grant the lock to a hold that has ended, or that nobody waits for any more. A
  -- later command may have queued its place already.
  may_grant := outcome.is_last AND _may_overtake AND NOT SCHEMA.is_done(_hold);
  IF may_grant AND NOT ${IS_LATE} THEN
    reply := SCHEMA.grant_lock(l, _owner, _hold, _process, _ttl_ms, _by, _place);
  ELSE
    IF outcome.is_last THEN
      l := SCHEMA.hand_over(l, NULL);
    END IF;
    IF may_grant THEN
      PERFORM SCHEMA.keep(l);
      reply := ${LATE_REPLY};
    ELSE
      -- Where too many were gone, this attempt hands the lock over to the next ones.
      l.turn := nullif(l.turn, '');
      reply := SCHEMA.contend(l, _owner, _hold, _process, _ttl_ms, _by, _place, _polls, _latest);
    END IF;
  END IF;
  RETURN json_build_array(outcome.answer, reply);
END
`,
  (reply) => {
    const [released, attempt] = reply as readonly unknown[];
    return { released: isOne(released), attempt: readAnyAttempt(attempt) };
  },
);
