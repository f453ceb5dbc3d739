import { printable } from '../../../lib/core/words/shown.js';
import { useEffect, useState } from 'preact/hooks';

export type View = 'now' | 'hot' | 'waits' | 'incidents' | 'processes';

/** Where the page is: a view, or the key of a store. */
export type Route = { readonly view: View } | { readonly view: 'key'; readonly store: string; readonly key: string };

export const TITLES: Readonly<Record<View, string>> = {
  now: 'Now',
  hot: 'Hot',
  waits: 'Waits',
  incidents: 'Incidents',
  processes: 'Processes',
};

const VIEWS = Object.keys(TITLES) as View[];

export function linkTo(view: View): string {
  return `#/${view}`;
}

export function linkToKey(store: string, key: string): string {
  return `#/key/${encodeURIComponent(store)}/${encodeURIComponent(key)}`;
}

/** The title of the document: what tabs and bookmarks are told apart by. */
export function titleOf(route: Route): string {
  return `${route.view === 'key' ? printable(route.key) : TITLES[route.view]} · Locks`;
}

function routeIn(hash: string): Route {
  const [, view = '', store = '', key = ''] = hash.split('/');
  try {
    return view === 'key'
      ? { view, store: decodeURIComponent(store), key: decodeURIComponent(key) }
      : { view: VIEWS.find((each) => each === view) ?? 'now' };
  } catch {
    return { view: 'now' };
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeIn(location.hash));
  useEffect(() => {
    const changed = (): void => setRoute(routeIn(location.hash));
    window.addEventListener('hashchange', changed);
    // It may have changed before this effect ran.
    changed();
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return route;
}
