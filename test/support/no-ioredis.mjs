import { register } from 'node:module';

/** Preloaded into a program, it hides ioredis, as where only node-redis is installed. */
const HOOKS = `export function resolve(name, context, next) {
  return next(name === 'ioredis' ? 'ioredis-that-is-not-installed' : name, context);
}`;
register(`data:text/javascript,${encodeURIComponent(HOOKS)}`);
