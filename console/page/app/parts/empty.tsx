import type { ComponentChildren, VNode } from 'preact';

/** Says that there is nothing to show, and why. */
export function Empty({ title, children }: { readonly title: string; readonly children: ComponentChildren }): VNode {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <p class="muted">{children}</p>
    </div>
  );
}
