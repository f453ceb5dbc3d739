import type { ComponentChildren, VNode } from 'preact';

/** Says that there is nothing to show, and why. */
export function Empty({ title, children }: { readonly title: string; readonly children: ComponentChildren }): VNode {
  return (
    <div class="empty">
      <svg class="empty-mark" viewBox="0 0 24 24" aria-hidden="true">
        <rect x="4.5" y="10.5" width="15" height="10" rx="2.5" />
        <path d="M8 10.5V7a4 4 0 0 1 7.6-1.7" />
      </svg>
      <p class="empty-title">{title}</p>
      <p class="muted">{children}</p>
    </div>
  );
}
