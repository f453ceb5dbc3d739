/** A command got no reply in time; whether it was carried out is unknown. */
export class NoReply extends Error {
  constructor(limitMs: number) {
    super(`no reply within ${Math.max(0, Math.round(limitMs))} ms`);
  }
}
