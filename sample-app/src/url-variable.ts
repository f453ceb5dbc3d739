import { StartUpError } from './start-up.error.js';

const REDIS = ['redis:', 'rediss:'];
const POSTGRES = ['postgres:', 'postgresql:'];
const MYSQL = ['mysql:'];

/** The URL of a Redis server; undefined for an empty text. Throws `StartUpError` for another one. */
export function readRedisUrl(variable: string, text: string | undefined): string | undefined {
  return readUrl(variable, text, REDIS);
}

/** The URL of a PostgreSQL server in a variable. */
export function readPostgresUrl(variable: string, text: string | undefined): string | undefined {
  return readUrl(variable, text, POSTGRES);
}

/** The URL of a MySQL server in a variable. */
export function readMySqlUrl(variable: string, text: string | undefined): string | undefined {
  return readUrl(variable, text, MYSQL);
}

/** The message leaves out the value, which may hold a password. */
function readUrl(variable: string, text: string | undefined, protocols: readonly string[]): string | undefined {
  if (!text) {
    return undefined;
  }
  if (!URL.canParse(text) || !protocols.includes(new URL(text).protocol)) {
    throw new StartUpError(`${variable} is no URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}.`);
  }
  return text;
}
