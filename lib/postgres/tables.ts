/**
 * The tables of the locks. `SCHEMA` stands for the schema.
 *
 * `lease` has a row per key, which stays when the lock is free:
 *
 * | column | |
 * |---|---|
 * | `owner`, `fence` | of the lock; the fence is the last one where the lock is free |
 * | `ttl_ms` | the longest lease asked for, in milliseconds |
 * | `since`, `holder` | when it was acquired, and by whom, for messages |
 * | `ends` | the end of the lease or of the reservation; in the past where the lock is free |
 * | `holds`, `processes` | lists with one element for each hold: its id, and the process that it is in |
 * | `turn` | the place that the lock is reserved for |
 * | `queue`, `queue_ends` | the places, first come first, and until when the queue stays |
 * | `polling` | those of them that poll: they may be there though nobody listens for their messages |
 *
 * A place is called `<process>:<name>`. Lists are NULL where they are empty. Rows change all the time, and their key
 * never: with room on its page, a change touches no index.
 *
 * Where several share a key, its `owner` is '', `ends` is the end of the last of them, `since` and `holder` are those
 * of the first that is in, and each has a row in `shared`:
 *
 * | column | |
 * |---|---|
 * | `name` | the id of a hold, or the place that room is reserved for, which has no owner |
 * | `number` | says who came first |
 * | `shares` | a count of permits, or 0 for one that reads |
 * | `ttl_ms`, `ends` | the longest lease asked for, in milliseconds, and its end |
 * | `owner`, `process`, `since`, `holder` | of a hold |
 *
 * `done` has a row per hold that was released while it was unanswered: the first answer, and until when it is kept.
 */
export const TABLES = `CREATE TABLE IF NOT EXISTS SCHEMA.lease (
  key text COLLATE "C" PRIMARY KEY,
  owner text,
  fence bigint NOT NULL DEFAULT 0,
  ttl_ms bigint,
  since timestamptz,
  holder text,
  ends timestamptz NOT NULL,
  holds text[],
  processes text[],
  turn text,
  queue text[],
  polling text[],
  queue_ends timestamptz
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE IF NOT EXISTS SCHEMA.done (
  hold text COLLATE "C" PRIMARY KEY,
  answer int NOT NULL,
  ends timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE IF NOT EXISTS SCHEMA.shared (
  key text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  shares bigint NOT NULL,
  ttl_ms bigint NOT NULL,
  ends timestamptz NOT NULL,
  owner text,
  process text,
  since timestamptz,
  holder text,
  PRIMARY KEY (key, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- CREATE INDEX IF NOT EXISTS would wait for a running VACUUM, and every operation would wait for it.
DO $do$
BEGIN
  IF to_regclass('SCHEMA.done_ends') IS NULL THEN
    CREATE INDEX done_ends ON SCHEMA.done (ends);
  END IF;
END
$do$;`;
