import type { Duration } from 'nestjs-distributed-lock';
import { StartUpError } from './start-up.error.js';

/** What the environment decides. An empty variable counts as unset. */
export class Settings {
  readonly port: number;
  /** A PostgreSQL server; undefined for the embedded database. */
  readonly databaseUrl: string | undefined;
  /** A Redis server for the locks; undefined for locks in the memory of this process. */
  readonly redisUrl: string | undefined;
  /** How long a request queues for a balance before it is answered with 423. */
  readonly lockWait: Duration = '5s';

  /** Throws `StartUpError` for a value of no use. */
  constructor(environment: NodeJS.ProcessEnv) {
    this.port = readPort(environment['PORT'] || '3000');
    this.databaseUrl = readUrl('DATABASE_URL', environment['DATABASE_URL'], ['postgres:', 'postgresql:']);
    this.redisUrl = readUrl('REDIS_URL', environment['REDIS_URL'], ['redis:', 'rediss:']);
  }
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) {
    throw new StartUpError(`PORT is "${text}". Set it to a number from 0 to 65535 (0: any free port), or leave it out for 3000.`);
  }
  return port;
}

/** The message leaves out the value, which may hold a password. */
function readUrl(name: string, text: string | undefined, protocols: readonly string[]): string | undefined {
  if (!text) {
    return undefined;
  }
  if (!URL.canParse(text) || !protocols.includes(new URL(text).protocol)) {
    throw new StartUpError(`${name} is no URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}.`);
  }
  return text;
}
