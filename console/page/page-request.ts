import { ForbiddenException, UnsupportedMediaTypeException } from '@nestjs/common';

/** What the page reads of a request of Express or Fastify. */
export interface PageRequest {
  readonly url: string;
  /** Express: the URL before a router cut its own part off. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: unknown;
}

/**
 * Refuses what a page of another site has a browser ask. Plain HTTP hosts have no `Sec-Fetch-Site`; the data cannot be read there either,
 * since the answers allow no other origin.
 */
export function refuseOtherSites({ headers }: PageRequest): void {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw new ForbiddenException('The request comes from another site.');
  }
}

/** Refuses what a form or a script of another site can send: those can set neither this header nor this type without asking first. */
export function refuseForgery(request: PageRequest): void {
  refuseOtherSites(request);
  if (request.headers['x-lock-page'] !== '1') {
    throw new ForbiddenException('The header x-lock-page is missing.');
  }
  if (!/^application\/json\s*(;|$)/i.test(String(request.headers['content-type']))) {
    throw new UnsupportedMediaTypeException('The request has to be JSON.');
  }
}
