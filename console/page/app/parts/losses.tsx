import type { VNode } from 'preact';
import { printable } from '../../../../lib/core/words/shown.js';
import type { Incident } from '../model/state.js';

/** Tells screen readers of locks that were lost, and of nothing else. */
export function Losses({ losses }: { readonly losses: readonly Incident[] }): VNode {
  return (
    <div class="hidden" aria-live="polite">
      {losses.slice(0, 3).map(({ id, key, site, reason }) => (
        <p key={id}>
          Lock {printable(key)} was lost by {site}
          {reason && `: ${printable(reason)}`}.
        </p>
      ))}
      {losses.length > 3 && <p>{losses.length - 3} more locks were lost.</p>}
    </div>
  );
}
