import type { SearchStep } from '../../snapshot.js';
import type { Search, State } from './state.js';

/** A step in the search of a store. */
export type SearchNews =
  | { readonly store: string; readonly type: 'started' | 'stopped' }
  | { readonly store: string; readonly type: 'step'; readonly step: SearchStep; readonly at: number };

const BEGINNING: Search = { looked: 0, found: [], ended: undefined };

export function searched(state: State, news: SearchNews): State {
  const stores = state.stores.map((store) =>
    store.name === news.store ? { ...store, search: after(store.search ?? BEGINNING, news) } : store,
  );
  return { ...state, stores };
}

function after(search: Search, news: SearchNews): Search {
  if (news.type !== 'step') {
    return news.type === 'started' ? BEGINNING : { ...search, ended: search.ended ?? 'stopped' };
  }
  const { step, at } = news;
  const found = step.found.map((orphan) => ({
    ...orphan,
    until: orphan.remainingMs === undefined ? undefined : at + orphan.remainingMs,
  }));
  return { looked: Math.max(search.looked, step.looked), found: [...search.found, ...found], ended: step.ended };
}
