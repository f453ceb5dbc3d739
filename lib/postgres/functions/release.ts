import { DONE_MS } from '../../kit/protocol.js';
import { batchable, interval, isOne, operation, sqlFunction } from './sql-function.js';

/** Whether a hold that was unanswered was released a short while ago. */
export const IS_DONE = sqlFunction(
  'is_done(_hold text)',
  'boolean',
  `
BEGIN
  RETURN EXISTS (SELECT FROM SCHEMA.done WHERE hold = _hold AND ends > clock_timestamp());
END
`,
);

/**
 * Takes a hold of an owner out of a row that is locked, and leaves a done mark of one that is unanswered.
 *
 * Reply: the row, the answer to the release of this hold, the first one where a mark has it, and whether this run took
 * the last hold of a lease out.
 */
export const TAKE_OUT = sqlFunction(
  'take_out(INOUT l SCHEMA.lease, _hold text, _owner text, _unanswered boolean, OUT answer int, OUT is_last boolean)',
  'record',
  `
DECLARE
  at int := CASE WHEN l.owner = _owner THEN array_position(l.holds, _hold) END;
  is_in boolean := at IS NOT NULL;
BEGIN
  is_last := false;
  IF l.owner = '' THEN
    DELETE FROM SCHEMA.shared WHERE key = l.key AND name = _hold AND owner = _owner;
    is_in := FOUND;
    is_last := is_in;
  END IF;
  IF NOT is_in AND _unanswered THEN
    SELECT d.answer INTO answer FROM SCHEMA.done AS d WHERE d.hold = _hold AND d.ends > clock_timestamp();
    IF FOUND THEN
      RETURN;
    END IF;
  END IF;
  answer := CASE WHEN is_in THEN 1 ELSE 0 END;
  IF _unanswered THEN
    INSERT INTO SCHEMA.done AS d (hold, answer, ends) VALUES (_hold, answer, clock_timestamp() + ${interval(DONE_MS)})
      ON CONFLICT (hold) DO UPDATE SET answer = excluded.answer, ends = excluded.ends;
  END IF;
  IF at IS NOT NULL THEN
    l.holds := nullif(l.holds[:at - 1] || l.holds[at + 1:], '{}');
    l.processes := nullif(l.processes[:at - 1] || l.processes[at + 1:], '{}');
    is_last := l.holds IS NULL;
  END IF;
END
`,
);

/** Reply: 1, or 0 where the hold was not in. */
export const RELEASE = batchable(
  operation(
    'release',
    { key: 'text', hold: 'text', owner: 'text', unanswered: 'boolean' },
    `
DECLARE
  l SCHEMA.lease;
  outcome record;
BEGIN
  -- The only hold of a lock that nobody waits for, in one statement.
  UPDATE SCHEMA.lease SET owner = NULL, holds = NULL, processes = NULL, ends = clock_timestamp()
    WHERE key = _key AND holds = ARRAY[_hold] AND ends > clock_timestamp() AND queue IS NULL AND owner = _owner AND NOT _unanswered;
  IF FOUND THEN
    RETURN 1;
  END IF;
  l := SCHEMA.locked(_key);
  outcome := SCHEMA.take_out(l, _hold, _owner, _unanswered);
  l := outcome.l;
  IF outcome.is_last THEN
    l := SCHEMA.hand_over(l, NULL);
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN outcome.answer;
END
`,
    isOne,
  ),
);
