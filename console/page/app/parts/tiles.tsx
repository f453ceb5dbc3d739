import type { VNode } from 'preact';

/** A figure with its name. */
export interface Tile {
  readonly label: string;
  readonly value: string;
  readonly note?: string | undefined;
  readonly tone?: 'bad' | 'warn' | undefined;
  /** Where more is shown of it. */
  readonly link?: string | undefined;
}

/** A row of figures. */
export function Tiles({ tiles }: { readonly tiles: readonly Tile[] }): VNode {
  return (
    <dl class="tiles">
      {tiles.map(({ label, value, note, tone, link }) => (
        <div key={label} class={tone ?? ''}>
          <dt>{link ? <a href={link}>{label}</a> : label}</dt>
          <dd>
            {value}
            {note && <span class="note">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
