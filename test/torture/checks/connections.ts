import type { Evidence, Finding } from './check.js';

/** Whoever gives a command up may need a connection more; so may a process whose connections something cut. */
const CUTTING: ReadonlySet<string> = new Set([
  'crash', 'cut', 'killOnReply', 'killOnRelease', 'dropReplies', 'blackhole', 'refuse', 'deafen', 'sleep', 'nest', 'recover', 'killClients',
]); // prettier-ignore

/** A server has no more connections than the pools of its clients may make, also where it answers nobody. */
export function checkConnections({ history, faults }: Evidence): Finding {
  const seen = history.filter(({ op }) => op === 'connections');
  const violations = seen.flatMap(({ since = 0, t, count = 0, most = 0 }) => {
    const cuts = faults.all.filter(({ fault, from, to }) => CUTTING.has(fault) && from <= t && to >= since).length;
    // Connections that were cut may still be there, and the connections of one process are at most all.
    return count > most * (1 + cuts)
      ? [{ text: `a server had ${count} connections, and the pools of its clients may have ${most}`, entries: [] }]
      : [];
  });
  return { check: 'connections stay few', seen: `${seen.length} times`, violations };
}
