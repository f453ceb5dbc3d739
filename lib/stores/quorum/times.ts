/** The server's time in ms since 1970 in the reply to a vote, or to a command that came late; undefined where there is none. */
export function timeIn(reply: unknown): number | undefined {
  const time = Array.isArray(reply) ? Number(reply.at(-1)) : Number(String(reply).split(' ')[1]);
  return Number.isNaN(time) ? undefined : time;
}

/** Whether a command was refused because it came later than it may be carried out. */
export function isLate(reply: unknown): boolean {
  return Array.isArray(reply) && reply.length === 1;
}
