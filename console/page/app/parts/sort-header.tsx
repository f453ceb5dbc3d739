import type { VNode } from 'preact';

/** By which column a table is sorted. */
export interface Sorting<Column extends string> {
  readonly column: Column;
  readonly isDown: boolean;
}

interface SortHeaderProps<Column extends string> {
  readonly column: Column;
  readonly label: string;
  readonly sorting: Sorting<Column>;
  readonly sort: (sorting: Sorting<Column>) => void;
  readonly className?: string | undefined;
}

/** The head of a column that a table can be sorted by. */
export function SortHeader<Column extends string>({ column, label, sorting, sort, className }: SortHeaderProps<Column>): VNode {
  const isSorted = sorting.column === column;
  return (
    <th scope="col" class={className} aria-sort={isSorted ? (sorting.isDown ? 'descending' : 'ascending') : undefined}>
      <button type="button" class="sort" onClick={() => sort({ column, isDown: isSorted ? !sorting.isDown : true })}>
        {label}
        <span aria-hidden="true" class="arrow">
          {isSorted ? (sorting.isDown ? '↓' : '↑') : ''}
        </span>
      </button>
    </th>
  );
}
