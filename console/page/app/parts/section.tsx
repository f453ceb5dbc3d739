import type { ComponentChildren, VNode } from 'preact';

interface SectionProps {
  readonly title: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A part of a view with its heading, and what belongs beside that. */
export function Section({ title, note, children }: SectionProps): VNode {
  return (
    <section>
      <div class="section-head">
        <h2>{title}</h2>
        {note}
      </div>
      {children}
    </section>
  );
}
