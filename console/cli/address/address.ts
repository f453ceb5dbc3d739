import { STORES, type Kind } from '../options.js';
import { WrongUse } from '../wrong-use.js';
import { completed, hasPassword, loginIn, SENTINEL_LOGIN, SERVER_LOGIN, type Login } from './login.js';
import { filesOf, type TlsFiles, type TlsPaths } from './tls-files.js';
import { checkUrl, urlsIn } from './urls.js';

/** Where the locks are: the store, and how its servers are reached. */
export interface Address {
  readonly kind: Kind;
  /** With user and password, where they were given. */
  readonly urls: readonly string[];
  /** The name of the master; empty unless Sentinels watch it. */
  readonly master: string;
  /** Of the servers that Sentinels watch: their own user and password are in the URLs. */
  readonly login: Login;
  readonly tls: TlsFiles | undefined;
}

/** The options that make an address. */
export type AddressOptions = Readonly<Partial<Record<Kind | 'master' | keyof TlsPaths, string | undefined>>>;

/** The scheme of the URLs of a kind, and an example. */
interface Form {
  readonly scheme: RegExp;
  readonly example: string;
}

const REDIS: Form = { scheme: /^rediss?:\/\//, example: 'redis://host:6379' };
const FORMS: Readonly<Record<Kind, Form>> = {
  redis: REDIS,
  'redis-cluster': REDIS,
  'redis-sentinel': { ...REDIS, example: 'redis://host:26379' },
  quorum: REDIS,
  postgres: { scheme: /^postgres(ql)?:\/\//, example: 'postgres://user@host/database' },
  mysql: { scheme: /^(mysql|mariadb):\/\/[^/]+\/[^/?#]/, example: 'mysql://user@host/database' },
};

/** The variable of the environment that has the URLs, which other users of the machine do not see. */
export function variableOf(kind: Kind): string {
  return `LOCKS_${kind.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * The address in the options, or else in the environment. Throws `WrongUse` where there is no address, or more than
 * one, and where a part of it cannot be.
 */
export function addressOf(options: AddressOptions, env: NodeJS.ProcessEnv): Address {
  const inOptions = STORES.filter((kind) => options[kind] !== undefined);
  const given = inOptions.length > 0 ? inOptions : STORES.filter((kind) => env[variableOf(kind)]);
  const [kind, second] = given;
  if (kind === undefined || second !== undefined) {
    const problem = kind === undefined ? 'There is no store.' : 'There is more than one store.';
    throw new WrongUse(`${problem} Pass one of ${listOf(STORES.map(asOption))}, or set one of ${listOf(STORES.map(variableOf))}.`);
  }
  const urls = urlsIn(options[kind] ?? env[variableOf(kind)] ?? '');
  checkUrls(kind, urls);
  if (inOptions.length > 0 && urls.some(hasPassword)) {
    const variable = kind === 'redis-sentinel' ? SENTINEL_LOGIN.password : SERVER_LOGIN.password;
    throw new WrongUse(
      `${asOption(kind)}: others on this machine can read the password in the URL. Pass the URL in ${variableOf(kind)}, or the password in ${variable}.`,
    );
  }
  const login = loginIn(env);
  return {
    kind,
    urls: urls.map((url) => completed(url, kind === 'redis-sentinel' ? loginIn(env, SENTINEL_LOGIN) : login)),
    master: masterOf(kind, options.master, env),
    login,
    tls: filesOf(options, kind, urls),
  };
}

function checkUrls(kind: Kind, urls: readonly string[]): void {
  const option = asOption(kind);
  if (kind === 'redis' && urls.length > 1) {
    throw new WrongUse('--redis takes one URL. Pass the nodes of a Cluster to --redis-cluster, and several servers that vote to --quorum.');
  }
  urls.forEach((url) => checkUrl(url, option));
  const { scheme, example } = FORMS[kind];
  if (!urls.every((url) => scheme.test(url))) {
    throw new WrongUse(`${option} takes a URL such as '${example}'${kind === 'redis' ? '' : ', or several with commas between them'}.`);
  }
  if (new Set(urls).size < urls.length) {
    throw new WrongUse(`${option} has the same URL twice. Pass each once.`);
  }
  // The other nodes, and the servers behind Sentinels, are reached in the same way.
  if ((kind === 'redis-cluster' || kind === 'redis-sentinel') && new Set(urls.map(mannerOf)).size > 1) {
    throw new WrongUse(`${option}: all URLs need the same scheme (redis:// or rediss://), user and password.`);
  }
}

function mannerOf(url: string): string {
  const { protocol, username, password } = new URL(url);
  return JSON.stringify([protocol, username, password]);
}

function masterOf(kind: Kind, option: string | undefined, env: NodeJS.ProcessEnv): string {
  if (kind !== 'redis-sentinel') {
    if (option !== undefined) {
      throw new WrongUse('--master is the name of a master that Sentinels watch. Pass their URLs to --redis-sentinel.');
    }
    return '';
  }
  const name = option ?? env['LOCKS_MASTER'];
  if (!name) {
    throw new WrongUse(
      '--redis-sentinel needs --master NAME (or LOCKS_MASTER): what "sentinel monitor" calls the master, such as --master mymaster.',
    );
  }
  return name;
}

function asOption(kind: Kind): string {
  return `--${kind}`;
}

function listOf(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
