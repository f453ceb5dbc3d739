/**
 * When a lease that was asked for at `sentAt` must no longer be trusted: counted from the sending, never from the
 * reply, less 1 % for clocks that run at different speeds and 2 ms for the server's granularity (the drift allowance of
 * Redlock, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
 */
export function leaseDeadline(sentAt: number, ttlMs: number): number {
  return sentAt + ttlMs * 0.99 - 2;
}

/** The ttl whose deadline is `ms` after its sending. */
export function ttlUntil(ms: number): number {
  return (ms + 2) / 0.99;
}
