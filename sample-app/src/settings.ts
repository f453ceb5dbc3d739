import { randomBytes } from 'node:crypto';
import type { Duration } from 'nestjs-distributed-lock';
import { readLockPlace, type LockPlace } from './lock-place.js';
import { StartUpError } from './start-up.error.js';
import { readPostgresUrl } from './url-variable.js';

/** The settings that the environment decides. An empty variable counts as unset. */
export class Settings {
  readonly port: number;
  /** A PostgreSQL server; undefined for the embedded database. */
  readonly databaseUrl: string | undefined;
  readonly locks: LockPlace;
  /** How long a request queues for a balance before it is answered with 423. */
  readonly lockWait: Duration = '5s';
  /** Where spans are printed; undefined for nowhere. */
  readonly traces: 'console' | undefined;

  /** The password of operators: another one at each start, unless it is set. */
  readonly operatorToken: string;
  /** Whether it is known already, and need not be printed. */
  readonly isTokenSet: boolean;

  /** Throws `StartUpError` for a value of no use. */
  constructor(environment: NodeJS.ProcessEnv) {
    this.port = readPort(environment['PORT'] || '3000');
    this.databaseUrl = readPostgresUrl('DATABASE_URL', environment['DATABASE_URL']);
    this.locks = readLockPlace(environment);
    this.traces = readTraces(environment['OTEL']);
    this.isTokenSet = Boolean(environment['OPERATOR_TOKEN']);
    this.operatorToken = environment['OPERATOR_TOKEN'] || randomBytes(9).toString('base64url');
  }
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) {
    throw new StartUpError(`PORT is "${text}". Set it to a number from 0 to 65535 (0: any free port), or leave it out for 3000.`);
  }
  return port;
}

function readTraces(text: string | undefined): 'console' | undefined {
  if (!text) {
    return undefined;
  }
  if (text !== 'console') {
    throw new StartUpError(`OTEL is "${text}". Set it to console for traces on the console, or leave it out for none.`);
  }
  return text;
}
