/** The effect of an option, and the name of its value; an option without a value is a switch. */
export interface Option {
  readonly says: string;
  readonly value?: string;
  readonly default?: string;
  /** The letter that stands for it. */
  readonly short?: string;
}

const TABLE = {
  redis: { value: 'URL', says: 'one Redis server; or LOCKS_REDIS in the environment' },
  'redis-cluster': { value: 'URL[,URL]', says: 'nodes of a Redis Cluster, which tell of the others; or LOCKS_REDIS_CLUSTER' },
  'redis-sentinel': { value: 'URL[,URL]', says: 'Redis Sentinels, with --master; or LOCKS_REDIS_SENTINEL' },
  quorum: { value: 'URL,URL,URL', says: 'the servers of a quorum; or LOCKS_QUORUM' },
  postgres: { value: 'URL[,URL]', says: 'the databases, in the order of the application; or LOCKS_POSTGRES' },
  mysql: { value: 'URL[,URL]', says: 'databases of MySQL or MariaDB, in that order; or LOCKS_MYSQL' },
  master: { value: 'NAME', says: 'the name by which the Sentinels know the master; or LOCKS_MASTER' },
  prefix: { value: 'NAME', says: 'the prefix of LockModule', default: 'lock' },
  schema: { value: 'NAME', says: 'the schema in PostgreSQL (default: distributed_lock)' },
  ca: { value: 'FILE', says: 'TLS: the certificates of the authorities that are trusted, as PEM' },
  cert: { value: 'FILE', says: 'TLS: the certificate of this client, as PEM; with --key' },
  key: { value: 'FILE', says: 'TLS: its private key, as PEM, without a passphrase' },
  limit: { value: 'N', says: 'the most locks that are listed', default: '1000' },
  since: { value: 'TIME', says: 'how far back, such as 90s, 30m or 1h', default: '24h' },
  fence: { value: 'N', says: 'the fence that inspect shows; a later owner has another' },
  reason: { value: 'TEXT', says: 'why, for the logs, in 200 characters; asked for unless --yes is given' },
  by: { value: 'NAME', says: 'who, in 200 characters (default: the user of this machine)' },
  yes: { says: 'releases without asking' },
  json: { says: 'prints JSON; times in milliseconds' },
  help: { says: 'prints this help', short: 'h' },
  version: { says: 'prints the version', short: 'v' },
} as const satisfies Readonly<Record<string, Option>>;

export type OptionName = keyof typeof TABLE;

export const OPTIONS: Readonly<Record<OptionName, Option>> = TABLE;

/** Those that say where the locks are: a command needs one of them. */
export const STORES = ['redis', 'redis-cluster', 'redis-sentinel', 'quorum', 'postgres', 'mysql'] as const satisfies readonly OptionName[];

/** The kinds of stores that have an address, each named as its option is. */
export type Kind = (typeof STORES)[number];

/** Those that say more of the store. */
export const AT_THE_STORE = ['master', 'prefix', 'schema', 'ca', 'cert', 'key'] as const satisfies readonly OptionName[];

/** The options in the form of `parseArgs`. */
type Parsed = {
  readonly [Name in OptionName]: (typeof TABLE)[Name] extends { readonly default: string }
    ? { readonly type: 'string'; readonly default: string }
    : (typeof TABLE)[Name] extends { readonly value: string }
      ? { readonly type: 'string' }
      : { readonly type: 'boolean'; readonly default: false };
};

export const PARSED = Object.fromEntries(
  Object.entries<Option>(TABLE).map(([name, { value, default: usual, short }]) => [
    name,
    value === undefined
      ? { type: 'boolean', default: false, ...(short === undefined ? {} : { short }) }
      : { type: 'string', ...(usual === undefined ? {} : { default: usual }) },
  ]),
) as Parsed;
