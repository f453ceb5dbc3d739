import { ForbiddenException, UnsupportedMediaTypeException } from '@nestjs/common';

/** The part that the page reads of a request of Express or Fastify. */
export interface PageRequest {
  readonly url: string;
  /** Express: the URL before a router cut its own part off. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: unknown;
}

/**
 * Refuses requests that a page of another site has a browser send. Browsers send no `Sec-Fetch-Site` to plain HTTP
 * hosts, but they send an `Origin` with every request whose answer a script of another site could read, where the
 * application allows that (CORS).
 */
export function refuseOtherSites({ headers }: PageRequest): void {
  const { 'sec-fetch-site': site, origin, host } = headers;
  const isOwn = site === undefined ? origin === undefined || hostOf(origin) === host : site === 'same-origin' || site === 'none';
  if (!isOwn) {
    throw new ForbiddenException('The request comes from another site.');
  }
}

/** The host of an origin; undefined for `null`, which is what a page without an origin sends. */
function hostOf(origin: string | string[]): string | undefined {
  return URL.canParse(String(origin)) ? new URL(String(origin)).host : undefined;
}

/**
 * Refuses requests that a form or a script of another site can send: they can set neither this header nor this type
 * without asking first.
 */
export function refuseForgery(request: PageRequest): void {
  refuseOtherSites(request);
  if (request.headers['x-lock-page'] !== '1') {
    throw new ForbiddenException('The header x-lock-page is missing.');
  }
  if (!/^application\/json\s*(;|$)/i.test(String(request.headers['content-type']))) {
    throw new UnsupportedMediaTypeException('The request has to be JSON.');
  }
}
