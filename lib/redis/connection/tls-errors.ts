import type { LockError } from '../../core/words/errors.js';

/** Codes of connections that cannot be encrypted, however often they are made. */
const HOPELESS =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|ERR_TLS_CERT_|ERR_SSL_\w*(CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|WRONG_VERSION_NUMBER|PACKET_LENGTH))/;

/** Codes of OpenSSL for an alert of the server. */
const OF_OPENSSL = /^ERR_SSL/;

/** Codes of servers that cannot be reached at all. */
const NOBODY_THERE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;

/** The words for a connection that no retry encrypts, with the next step; undefined for other failures. */
export function tlsFailure(cause: Error, said: string): string | undefined {
  const code = textOf(cause, 'code');
  // OpenSSL's messages have files and lines of its own source: its reason is for people.
  const why = (OF_OPENSSL.test(code) && textOf(cause, 'reason')) || said;
  return HOPELESS.test(code) ? `The connection to Redis cannot be encrypted: ${why} (${code}). ${cureOf(code)}` : undefined;
}

/** A further step where a connection never came to stand: a server may only be silent, or close it. */
export function neverConnected({ cause }: LockError): string {
  return NOBODY_THERE.test(textOf(cause, 'code'))
    ? ''
    : ' Make sure that client and port both use TLS, or neither, and that the client has the certificate that the server wants.';
}

function textOf(cause: unknown, name: 'code' | 'reason'): string {
  const text = (Object(cause) as Readonly<Record<string, unknown>>)[name];
  return typeof text === 'string' ? text : '';
}

function cureOf(code: string): string {
  if (/WRONG_VERSION|PACKET_LENGTH/.test(code)) {
    return 'The port takes connections without TLS: use redis:// there, or the port that has TLS.';
  }
  if (/ALTNAME|HOSTNAME/.test(code)) {
    return 'Connect by a name that stands in the certificate of the server, or give its name to the client as tls.servername.';
  }
  if (OF_OPENSSL.test(code)) {
    return 'The server refused the certificate of the client: give it one that the server trusts, as tls.cert and tls.key.';
  }
  return 'Give the client the authority of the certificate as tls.ca, or the server a certificate that is valid.';
}
