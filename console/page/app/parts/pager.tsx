import type { VNode } from 'preact';

interface PagerProps {
  readonly page: number;
  readonly size: number;
  readonly count: number;
  readonly turn: (page: number) => void;
}

/** Leads through a table that is shown in parts. */
export function Pager({ page, size, count, turn }: PagerProps): VNode | null {
  const last = Math.max(0, Math.ceil(count / size) - 1);
  if (last === 0) {
    return null;
  }
  const from = page * size + 1;
  return (
    <nav class="pager" aria-label="Pages">
      <span class="muted">
        {from.toLocaleString('en')}–{Math.min(count, from + size - 1).toLocaleString('en')} of {count.toLocaleString('en')}
      </span>
      <button type="button" disabled={page === 0} onClick={() => turn(page - 1)}>
        Previous
      </button>
      <button type="button" disabled={page >= last} onClick={() => turn(page + 1)}>
        Next
      </button>
    </nav>
  );
}
