import { wrongOption } from '../core/words/check-options.js';
import { LockConfigurationError } from '../core/words/errors.js';
import { makeTickets } from '../nest/current-tickets.js';
import { TICKETS_HEADER } from './names.js';

/**
 * The header `lock-tickets` for a request to a service that is trusted; empty outside of any lock. For `fetch`:
 * `fetch(url, { redirect: 'error', headers: { ...ticketHeaders() } })`. A redirect would take the header to another
 * host.
 */
export function ticketHeaders(): Record<string, string> {
  const text = makeTickets();
  return text === undefined ? {} : { [TICKETS_HEADER]: text };
}

/** The part that is used of an instance of axios, of whichever version. */
export interface AxiosLike {
  readonly interceptors: { readonly request: { use(...args: never[]): unknown } };
  getUri(...args: never[]): string;
}

interface AxiosRequest {
  readonly headers: { set(name: string, value: string): unknown; delete(name: string): unknown };
  transformRequest?: Transform | readonly Transform[] | undefined;
  beforeRedirect?: ((options: { headers?: Record<string, unknown> }, ...rest: never[]) => void) | undefined;
  fetchOptions?: { readonly redirect?: unknown } | undefined;
}

type Transform = (this: AxiosRequest, data: unknown, ...rest: never[]) => unknown;

interface Axios {
  readonly interceptors: { readonly request: { use(onRequest: (request: AxiosRequest) => AxiosRequest): unknown } };
  getUri(request: AxiosRequest): string;
}

/**
 * Has an instance of axios (`httpService.axiosRef` of `@nestjs/axios`) send the tickets of the locks that the running
 * code is inside of, in the header `lock-tickets`, to these origins alone: `sendTickets(axios, 'http://stock:3000')`. A
 * redirected request has no tickets; with the adapter `fetch` a redirect is an error. Throws `LockConfigurationError`
 * for an instance that is not of axios, and for an invalid origin.
 */
export function sendTickets(instance: AxiosLike, to: string | readonly string[]): void {
  const axios = instance as unknown as Axios;
  if (typeof (axios as Axios | undefined)?.interceptors?.request?.use !== 'function') {
    throw wrongOption(
      'sendTickets: what was passed',
      instance,
      'Pass an instance of axios: httpService.axiosRef where it comes from @nestjs/axios.',
    );
  }
  const origins = new Set([to].flat().map(originOf));
  const addOrDrop: Transform = function (data) {
    const uri = axios.getUri(this);
    const text = URL.canParse(uri) && origins.has(new URL(uri).origin) ? makeTickets() : undefined;
    if (text === undefined) {
      // Of a request that was tried before, perhaps elsewhere.
      this.headers.delete(TICKETS_HEADER);
    } else {
      addTickets(this, text);
    }
    return data;
  };
  axios.interceptors.request.use((request) => {
    // The last that is asked before a request is sent: other interceptors may still change where it goes.
    request.transformRequest = [request.transformRequest ?? [], addOrDrop].flat();
    return request;
  });
}

function addTickets(request: AxiosRequest, text: string): void {
  const { beforeRedirect, fetchOptions } = request;
  request.headers.set(TICKETS_HEADER, text);
  request.beforeRedirect = (options, ...rest) => {
    delete options.headers?.[TICKETS_HEADER];
    beforeRedirect?.(options, ...rest);
  };
  // The adapter fetch, which knows no beforeRedirect.
  request.fetchOptions = { ...fetchOptions, redirect: fetchOptions?.redirect === 'manual' ? 'manual' : 'error' };
}

function originOf(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || url.origin === 'null' || url.href.replace(/\/$/, '') !== url.origin) {
    // Perhaps with a password, so it is not repeated.
    throw new LockConfigurationError("sendTickets: what was passed is no origin. Pass such as 'http://stock:3000', without a path.");
  }
  return url.origin;
}
