import type { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';

/** The part that is used of an instance of Fastify. */
interface Fastify {
  readonly initialConfig?: { readonly ignoreTrailingSlash?: boolean };
  get(path: string, answer: (request: unknown, reply: { redirect(to: string): unknown }) => unknown): unknown;
}

/**
 * Redirects a browser that asks for the page with a slash at its end. Express serves both; for Fastify this is another
 * path, which Nest cannot register. The redirect is relative, since a proxy may have put something in front. It tells
 * nothing, so it needs no guard.
 */
export function redirectSlash({ httpAdapter }: HttpAdapterHost, config: ApplicationConfig, path: string): void {
  const fastify = httpAdapter?.getType() === 'fastify' ? (httpAdapter.getInstance() as Fastify) : undefined;
  if (!fastify || fastify.initialConfig?.ignoreTrailingSlash) {
    return;
  }
  const parts = [config.getGlobalPrefix(), path].flatMap((part) => part.split('/')).filter((part) => part !== '');
  const last = parts.at(-1);
  if (last !== undefined) {
    fastify.get(`/${parts.join('/')}/`, (_request, reply) => reply.redirect(`../${last}`));
  }
}
