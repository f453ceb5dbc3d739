import type { Address } from './address/address.js';
import type { Kind } from './options.js';

/** The common cause of a connection's error, as a sentence after the error; empty where nothing is known. */
export function hintOf(message: string, { kind, urls, tls }: Pick<Address, 'kind' | 'urls' | 'tls'>): string {
  const isEncrypted = urls.some((url) => /^rediss:/.test(url));
  const known = HINTS.find(([pattern, , kinds]) => pattern.test(message) && (!kinds || kinds.includes(kind)));
  if (known) {
    return ` ${known[1]}`;
  }
  if (/no reply within|wrong version number|packet length/i.test(message) && isEncrypted) {
    return ' If the port speaks no TLS, pass redis:// instead of rediss://.';
  }
  if (
    /ECONNRESET|EPIPE|connection was (?:closed|lost)|there is no connection|sentinels are unreachable/i.test(message) &&
    isEncrypted &&
    !tls?.cert
  ) {
    return tls ? ` ${OWN_CERTIFICATE}` : ' If an authority of your own has signed the certificate, pass --ca FILE.';
  }
  return /ECONNRESET|EPIPE|Connection is closed|not ready/.test(message) && !isEncrypted && urls.some((url) => url.startsWith('redis:'))
    ? ' If the port speaks TLS, pass rediss:// instead of redis://.'
    : '';
}

const OWN_CERTIFICATE = 'If the server asks for a certificate of this client, pass --cert FILE --key FILE.';
const HINTS: readonly (readonly [pattern: RegExp, hint: string, kinds?: readonly Kind[]])[] = [
  [/self[- ]signed certificate|unable to (?:get|verify)/i, 'Pass the file with the certificate of its authority: --ca FILE.'],
  [/certificate required|valid client certificate|bad certificate/i, 'Pass the certificate of this client: --cert FILE --key FILE.'],
  [/does not match certificate/i, 'Write the name of the host in the URL as it stands in its certificate.'],
  [/cluster support disabled/, 'The server is in no Cluster: pass its URL to --redis.', ['redis-cluster']],
  [/node of a Redis Cluster/, 'Here: pass its URL to --redis-cluster.', ['redis', 'quorum']],
  [/unknown command/i, 'If the server is a Sentinel, pass its URL to --redis-sentinel.', ['redis', 'quorum']],
  [/No such master with that name/i, 'See which masters the Sentinels watch: doctor.', ['redis-sentinel']],
];
