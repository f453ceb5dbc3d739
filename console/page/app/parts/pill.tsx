import type { ComponentChildren, VNode } from 'preact';

export type Tone = 'good' | 'warn' | 'bad' | 'plain';

const MARKS: Readonly<Record<Tone, string>> = { good: '✓', warn: '!', bad: '×', plain: '' };

/** A short state: by its words and its mark, and not by its colour alone. */
export function Pill({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): VNode {
  return (
    <span class={`pill ${tone}`}>
      {MARKS[tone] && <span aria-hidden="true">{MARKS[tone]}</span>}
      {children}
    </span>
  );
}
