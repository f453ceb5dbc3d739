import type { VNode } from 'preact';
import { dateOf, timeOfDay, zoneOf } from '../model/format.js';

/** A moment: its date and its time of day, and its zone where somebody points at it. */
export function Time({ at }: { readonly at: number }): VNode {
  return (
    <time class="mono" dateTime={new Date(at).toISOString()} title={`${dateOf(at)} ${timeOfDay(at)} ${zoneOf(at)}`}>
      <span class="muted">{dateOf(at)}</span> {timeOfDay(at)}
    </time>
  );
}
