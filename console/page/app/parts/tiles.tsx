import type { VNode } from 'preact';

/** A figure with its name. */
export interface Tile {
  readonly label: string;
  readonly value: string;
  readonly note?: string | undefined;
  readonly tone?: 'bad' | 'warn' | undefined;
}

/** A row of figures. */
export function Tiles({ tiles }: { readonly tiles: readonly Tile[] }): VNode {
  return (
    <dl class="tiles">
      {tiles.map(({ label, value, note, tone }) => (
        <div key={label} class={tone ?? ''}>
          <dt>{label}</dt>
          <dd>
            {value}
            {note && <span class="note">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
