/** A command got no reply in time; whether it was carried out is unknown. */
export class NoReply extends Error {
  constructor(limitMs: number) {
    super(`no reply within ${Math.max(0, Math.round(limitMs))} ms`);
  }
}

/** Rejects with `late` where the work takes longer. After the event loop was blocked, unread replies are read first. */
export function within<T>(limitMs: number, work: Promise<T>, late: () => Error = () => new NoReply(limitMs)): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(late())), limitMs).unref();
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
