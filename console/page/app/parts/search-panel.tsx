import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ViewProps } from '../app.js';
import { search } from '../connection/search.js';
import { printable } from '../../../../lib/core/words/shown.js';
import { counted } from '../model/format.js';
import { known } from '../model/known-word.js';
import type { Search, StoreState } from '../model/state.js';

const ENDS: Readonly<Record<NonNullable<Search['ended']>, string>> = {
  complete: 'The whole store was searched.',
  partly: 'Not all of the store was searched: it took too long.',
  failed: 'The store could not be searched: it failed, or its user may not.',
  stopped: 'Stopped.',
};

type SearchPanelProps = Pick<ViewProps, 'change'> & { readonly store: StoreState; readonly isNamed: boolean };

/** Starts and stops the search of a store for locks that nobody answers for. */
export function SearchPanel({ store, isNamed, change }: SearchPanelProps): VNode {
  const stop = useRef<(() => void) | undefined>(undefined);
  useEffect(() => () => stop.current?.(), []);
  const isRunning = store.search !== undefined && store.search.ended === undefined;
  const start = (): void => {
    change({ type: 'search', news: { store: store.name, type: 'started' } });
    const close = search(store.name, (step) => change({ type: 'search', news: { store: store.name, type: 'step', step, at: Date.now() } }));
    stop.current = () => {
      close();
      change({ type: 'search', news: { store: store.name, type: 'stopped' } });
    };
  };
  const end = (): void => stop.current?.();
  return (
    <div class="search">
      <button type="button" onClick={isRunning ? end : start} title="Looks at every key of the server">
        {isRunning ? 'Stop the search' : `Search ${isNamed ? `“${store.name}”` : 'the store'} for orphans`}
      </button>
      {store.search && (
        <p class="muted">
          {isRunning && <progress aria-label="Searching" />}
          {counted(store.search.looked, 'lock')} seen, {counted(store.search.found.length, 'orphan')}.{' '}
          {store.search.ended && (known(ENDS, store.search.ended) ?? printable(store.search.ended))}
        </p>
      )}
    </div>
  );
}
