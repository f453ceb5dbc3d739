import type { Address } from './address.js';

/** What an error of a connection often comes from, as a sentence after its own; empty where nothing is known. */
export function hintOf(message: string, { urls }: Pick<Address, 'urls'>): string {
  const isEncrypted = urls.some((url) => /^rediss:/.test(url));
  if (/self[- ]signed certificate|unable to (?:get|verify)/i.test(message)) {
    return ' Set NODE_EXTRA_CA_CERTS to the file with the certificate of its authority.';
  }
  if (/no reply within|wrong version number|packet length/i.test(message) && isEncrypted) {
    return ' If the port speaks no TLS, pass redis:// instead of rediss://.';
  }
  return /ECONNRESET|EPIPE|Connection is closed|not ready/.test(message) && !isEncrypted && urls.some((url) => url.startsWith('redis:'))
    ? ' If the port speaks TLS, pass rediss:// instead of redis://.'
    : '';
}
