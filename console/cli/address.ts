import { WrongUse } from './wrong-use.js';

/** The kinds of stores that have an address. */
const KINDS = ['redis', 'quorum', 'postgres'] as const;
type Kind = (typeof KINDS)[number];

/** Where the locks are: the store, and the URLs of its servers. */
export interface Address {
  readonly kind: Kind;
  readonly urls: readonly string[];
}

/** The variables of the environment, which other users of the machine do not see. */
const VARIABLES: Readonly<Record<Kind, string>> = { redis: 'LOCKS_REDIS', quorum: 'LOCKS_QUORUM', postgres: 'LOCKS_POSTGRES' };

/** A comma in a password is no end of a URL. */
const BETWEEN_URLS = /,(?=(?:rediss?|postgres(?:ql)?):\/\/)/;

/** The address in the options, or else in the environment. Throws `WrongUse` where there is none, or more than one. */
export function addressOf(options: Readonly<Partial<Record<Kind, string | undefined>>>, env: NodeJS.ProcessEnv): Address {
  const inOptions = KINDS.filter((kind) => options[kind] !== undefined);
  const given = inOptions.length > 0 ? inOptions : KINDS.filter((kind) => env[VARIABLES[kind]]);
  const [kind, second] = given;
  if (kind === undefined || second !== undefined) {
    const problem = kind === undefined ? 'There is no store.' : 'There is more than one store.';
    throw new WrongUse(`${problem} Pass one of --redis, --quorum and --postgres, or set one of ${Object.values(VARIABLES).join(', ')}.`);
  }
  const urls = (options[kind] ?? env[VARIABLES[kind]] ?? '').split(BETWEEN_URLS);
  if (kind === 'redis' && urls.length > 1) {
    throw new WrongUse('--redis takes one URL. Pass several servers that vote to --quorum.');
  }
  urls.forEach((url) => checkUrl(url, `--${kind}`));
  if (kind === 'postgres' && !urls.every((url) => /^postgres(ql)?:\/\//.test(url))) {
    throw new WrongUse("--postgres takes a URL such as 'postgres://user@host/database', or several with commas between them.");
  }
  return { kind, urls };
}

/** Says what of a URL is wrong, without showing it: it may have a password. */
function checkUrl(url: string, option: string): void {
  const [, authority] = /^[a-z]+:\/\/([^/]*)/i.exec(url) ?? [];
  if (authority === undefined || URL.canParse(url)) {
    return;
  }
  const [, port] = /:(\d+)$/.exec(authority) ?? [];
  if (port !== undefined && Number(port) > 65_535) {
    throw new WrongUse(`${option}: the port ${port} is out of range. A port is a number from 1 to 65535.`);
  }
  throw new WrongUse(
    `${option}: the URL cannot be read. Write user name and password with encodeURIComponent(): characters such as # / ? @ and % end them.`,
  );
}
