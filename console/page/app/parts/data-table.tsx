import type { ComponentChildren, VNode } from 'preact';
import { SortHeader, type Sorting } from './sort-header.js';

/** The head of a column: its label, its class, and by what the table is sorted where it is clicked. */
export type Head<Column extends string> = readonly [label: string, className?: string, column?: Column];

interface DataTableProps<Column extends string> {
  /** The name of the table, for users who do not see it. */
  readonly label: string;
  readonly heads: readonly Head<Column>[];
  readonly sorting?: Sorting<Column>;
  readonly sort?: (sorting: Sorting<Column>) => void;
  /** The rows. */
  readonly children: ComponentChildren;
}

/** A table, in a box that scrolls where it is too wide. */
export function DataTable<Column extends string>({ label, heads, sorting, sort, children }: DataTableProps<Column>): VNode {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map(([text, className, column]) =>
              column && sorting && sort ? (
                <SortHeader key={text} column={column} label={text} sorting={sorting} sort={sort} className={className} />
              ) : (
                <th key={text} scope="col" class={className}>
                  {text}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
