import { readFileSync } from 'node:fs';
import type { Kind } from '../options.js';
import { WrongUse } from '../wrong-use.js';

/** The paths of the options of TLS. */
export interface TlsPaths {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** The contents of the files, as `tls.connect` takes them. */
export interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const OPTIONS = ['ca', 'cert', 'key'] as const;

/**
 * Reads the files; undefined where none is given. Throws `WrongUse` where a file is missing, or where the URLs do not
 * use TLS.
 */
export function filesOf(paths: TlsPaths, kind: Kind, urls: readonly string[]): TlsFiles | undefined {
  const given = OPTIONS.filter((option) => paths[option] !== undefined);
  const [first] = given;
  if (first === undefined) {
    return undefined;
  }
  if ((paths.cert === undefined) !== (paths.key === undefined)) {
    const [has, lacks] = paths.cert === undefined ? ['key', 'cert'] : ['cert', 'key'];
    throw new WrongUse(`--${has} needs --${lacks} FILE: a client proves who it is by a certificate and its private key.`);
  }
  if (urls.some((url) => url.startsWith('redis:'))) {
    throw new WrongUse(`--${first} is for TLS, which redis:// does not use. Write rediss:// in the URLs of --${kind}.`);
  }
  if (urls.some((url) => /[?&]sslmode=disable\b/.test(url))) {
    throw new WrongUse(`--${first} is for TLS, which sslmode=disable forbids. Write sslmode=verify-full in the URLs of --${kind}.`);
  }
  return Object.fromEntries(given.map((option) => [option, read(option, paths[option] as string)]));
}

function read(option: (typeof OPTIONS)[number], path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new WrongUse(`--${option}: the file cannot be read: ${(cause as Error).message}. Pass the path of a PEM file.`, { cause });
  }
  if (!text.includes(option === 'key' ? 'PRIVATE KEY-----' : '-----BEGIN CERTIFICATE-----')) {
    throw new WrongUse(`--${option}: the file has no ${option === 'key' ? 'private key' : 'certificate'} as PEM. Pass one that has.`);
  }
  return text;
}
