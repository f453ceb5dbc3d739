/** The server's time, in ms, in the reply to `ACQUIRE` or in one that refuses a late command. */
export function timeIn(reply: unknown): number {
  if (Array.isArray(reply)) {
    return Number(reply.at(-1));
  }
  const text = String(reply);
  const at = text.indexOf(' ');
  return at < 0 ? Number(text) / 1000 : Number(text.slice(at + 1));
}

/** Whether a command came too late to be carried out. */
export function isLate(reply: unknown): boolean {
  return Array.isArray(reply) && reply.length === 1;
}

/** Reads a list of 1 and 0. */
export function readAnswers(reply: unknown): boolean[] {
  return (reply as readonly unknown[]).map((answer) => Number(answer) === 1);
}
