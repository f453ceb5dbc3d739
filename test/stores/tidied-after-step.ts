import { TIDY } from '../../lib/mysql/procedures/upkeep';
import { procedureName } from '../../lib/mysql/schema';
import type { MySqlServer } from '../support/mysql-server';

const HOUR_US = 3_600_000_000;

/** Of a run whose run before ended an hour later, by a clock that was set back since. */
interface Tidied {
  readonly removed: number;
  /** Where the next run goes on. */
  readonly until: number;
}

/** The mark expired 1 µs after 1970. */
export const TIDIED: Tidied = { removed: 1, until: 1 };

export async function tidiedAfterStep(server: MySqlServer, database: string): Promise<Tidied> {
  await server.query(`INSERT INTO ${database}.distributed_lock_done VALUES ('old', 1, 1)`);
  const later = `cast(unix_timestamp(now(6)) * 1000000 AS UNSIGNED) + ${HOUR_US}`;
  const [rows] = await server.query<readonly { removed: number; until_us: number }[]>(`CALL ${procedureName(TIDY, database)}(${later})`);
  return { removed: Number(rows?.[0]?.removed), until: Number(rows?.[0]?.until_us) };
}
