/** What an option does, and what its value is called; one without a value is a switch. */
export interface Option {
  readonly says: string;
  readonly value?: string;
  readonly default?: string;
}

const TABLE = {
  redis: { value: 'URL', says: 'one Redis server; or LOCKS_REDIS in the environment' },
  quorum: { value: 'URL,URL,URL', says: 'the servers of a quorum; or LOCKS_QUORUM' },
  postgres: { value: 'URL[,URL]', says: 'the databases, in the order of the application; or LOCKS_POSTGRES' },
  prefix: { value: 'NAME', says: 'the prefix of LockModule', default: 'lock' },
  schema: { value: 'NAME', says: 'the schema in PostgreSQL (default: distributed_lock)' },
  limit: { value: 'N', says: 'the most locks that are listed', default: '1000' },
  since: { value: 'TIME', says: 'how far back, such as 90s, 30m or 1h', default: '24h' },
  fence: { value: 'N', says: 'the fence that inspect shows; a later owner has another' },
  reason: { value: 'TEXT', says: 'why, for the logs, in 200 characters; asked for unless --yes is given' },
  by: { value: 'NAME', says: 'who, in 200 characters (default: the user of this machine)' },
  yes: { says: 'releases without asking' },
  json: { says: 'prints JSON; times in milliseconds' },
  help: { says: 'prints this help' },
  version: { says: 'prints the version' },
} as const satisfies Readonly<Record<string, Option>>;

export type OptionName = keyof typeof TABLE;

export const OPTIONS: Readonly<Record<OptionName, Option>> = TABLE;

/** Those that say where the locks are. */
export const ADDRESS: readonly OptionName[] = ['redis', 'quorum', 'postgres', 'prefix', 'schema'];

/** The same for `parseArgs`. */
type Parsed = {
  readonly [Name in OptionName]: (typeof TABLE)[Name] extends { readonly default: string }
    ? { readonly type: 'string'; readonly default: string }
    : (typeof TABLE)[Name] extends { readonly value: string }
      ? { readonly type: 'string' }
      : { readonly type: 'boolean'; readonly default: false };
};

export const PARSED = Object.fromEntries(
  Object.entries<Option>(TABLE).map(([name, { value, default: usual }]) => [
    name,
    value === undefined ? { type: 'boolean', default: false } : { type: 'string', ...(usual === undefined ? {} : { default: usual }) },
  ]),
) as Parsed;
