import type { VNode } from 'preact';
import { counted, span } from '../model/format.js';
import type { Deadlock } from '../model/state.js';

/** A deadlock in words. */
export function DeadlockCard({ deadlock: { calls, at }, now }: { readonly deadlock: Deadlock; readonly now: number }): VNode {
  const processes = new Set(calls.map(({ process }) => process)).size;
  return (
    <article class="deadlock">
      <h3>
        {counted(calls.length, 'call')} in {counted(processes, 'process', 'processes')} waited for each other
        <span class="muted">{span(now - at)} ago</span>
      </h3>
      <ol>
        {calls.map((call) => (
          <li key={`${call.process} ${call.holds}`}>
            <strong>{call.site}</strong> <span class="muted">({call.process})</span> held <code>{call.holds}</code> for {span(call.heldMs)}{' '}
            and waited for <code>{call.waitsFor}</code> since {span(call.waitedMs)}.
          </li>
        ))}
      </ol>
      <p class="muted">
        The call that got its lock last gave way. To end this for good, take the locks in one order, or all at once with a list of keys.
      </p>
    </article>
  );
}
