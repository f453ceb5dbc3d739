import type { VNode } from 'preact';
import { span } from '../model/format.js';

/** The rest of a lease, against the longest lease seen of its name. */
export function LeaseBar({ leftMs, wholeMs }: { readonly leftMs: number | undefined; readonly wholeMs: number }): VNode {
  if (leftMs === undefined) {
    return <span class="muted">no end</span>;
  }
  const part = Math.max(0, Math.min(1, leftMs / Math.max(1, wholeMs)));
  return (
    <span class={part < 0.25 ? 'lease short' : 'lease'}>
      <svg aria-hidden="true">
        <rect class="track" width="100%" height="100%" rx="2" />
        <rect class="fill" width="100%" height="100%" rx="2" style={{ transform: `scaleX(${part.toFixed(3)})` }} />
      </svg>
      <span>{leftMs <= 0 ? 'over' : span(leftMs)}</span>
    </span>
  );
}
