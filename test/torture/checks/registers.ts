import type { HistoryEvent } from '../event.js';
import type { Evidence, Finding, Violation } from './check.js';

/** Increments that claim the fence are never lost. The others are the control: those a pause makes lost. */
export function checkRegisters({ history, keys, registers }: Evidence): Finding {
  const violations: Violation[] = [];
  const counts = { written: 0, refused: 0 };
  for (const key of keys) {
    const writes = history.filter((event) => event.op === 'write' && event.register === 'claimed' && event.key === key);
    const written = count(writes, 'ok');
    const refused = count(writes, 'fail');
    // Of a process that was killed in between, nobody knows.
    const unknown = count(writes, 'invoke') - written - refused;
    const found = registers.get(key)?.claimed ?? 0;
    counts.written += written;
    counts.refused += refused;
    if (found < written || found > written + unknown) {
      violations.push({
        text: `${written} increments of "${key}" were written with a fence, ${unknown} perhaps, and the register holds ${found}`,
        entries: [],
      });
    }
  }
  return { check: 'no fenced update lost', seen: `${counts.written} written, ${counts.refused} refused`, violations };
}

/** How many increments without a fence were lost, and of how many. */
export function controlOf({ history, keys, registers }: Evidence): { lost: number; of: number } {
  const all = keys.map((key) => {
    const written = count(
      history.filter((event) => event.register === 'plain' && event.key === key),
      'ok',
    );
    return { lost: Math.max(0, written - (registers.get(key)?.plain ?? 0)), of: written };
  });
  return all.reduce((sum, { lost, of }) => ({ lost: sum.lost + lost, of: sum.of + of }));
}

function count(events: readonly HistoryEvent[], phase: HistoryEvent['phase']): number {
  return events.filter((event) => event.phase === phase).length;
}
