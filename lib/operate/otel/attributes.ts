/** Under this name OpenTelemetry knows the library. */
export const SCOPE = 'nestjs-distributed-lock';

/** The attributes of spans that are the library's own: OpenTelemetry has none for locks. */
export const LOCK = {
  name: 'distributed_lock.name',
  mode: 'distributed_lock.mode',
  store: 'distributed_lock.store',
  key: 'distributed_lock.key',
  keys: 'distributed_lock.keys',
  fence: 'distributed_lock.fence',
  ttlMs: 'distributed_lock.ttl_ms',
  waitMs: 'distributed_lock.wait_ms',
  contended: 'distributed_lock.contended',
  inside: 'distributed_lock.inside',
  outcome: 'distributed_lock.outcome',
  blockedBy: 'distributed_lock.blocked_by',
} as const;

/** `Class.method` of the call. */
export const SITE = 'code.function.name';

export const ERROR_TYPE = 'error.type';
