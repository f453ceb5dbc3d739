import { isWellFormed } from '../../../lib/redis/connection/redis-source.js';
import { WrongUse } from '../wrong-use.js';

/** A comma in a password is no end of a URL. */
const BETWEEN_URLS = /,(?=(?:rediss?|postgres(?:ql)?|mysql|mariadb):\/\/)/;

/** The URLs in a list with commas between them. */
export function urlsIn(list: string): string[] {
  return list.split(BETWEEN_URLS);
}

/**
 * Throws `WrongUse` that says which part of a URL is wrong, without showing the URL: it may have a password. A text
 * that is no URL passes.
 */
export function checkUrl(url: string, option: string): void {
  const [, authority] = /^[a-z]+:\/\/([^/]*)/i.exec(url) ?? [];
  if (authority === undefined || isWellFormed(url)) {
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
