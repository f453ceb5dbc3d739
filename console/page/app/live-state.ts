import { useEffect, useReducer } from 'preact/hooks';
import { Live } from './connection/live.js';
import type { Followed } from './connection/follow.js';
import type { PageInfo } from '../snapshot.js';
import { merge } from './model/merge.js';
import { searched, type SearchNews } from './model/searched.js';
import { NOTHING, type ConnectionStatus, type State } from './model/state.js';

/** The changes of the state. */
export type Change =
  | { readonly type: 'info'; readonly info: PageInfo }
  | { readonly type: 'survey'; readonly survey: Followed; readonly at: number }
  | { readonly type: 'status'; readonly status: ConnectionStatus }
  | { readonly type: 'search'; readonly news: SearchNews }
  | { readonly type: 'seen'; readonly at: number };

function changed(state: State, change: Change): State {
  switch (change.type) {
    case 'status':
      return state.connection === change.status ? state : { ...state, connection: change.status };
    case 'search':
      return searched(state, change.news);
    case 'seen':
      return { ...state, seenAt: remember(change.at) };
    case 'info':
      return { ...state, info: change.info };
    case 'survey':
      return merge(state, change.survey.stores, change.at);
  }
}

const SEEN_AT = 'locks: incidents seen at';

/** Up to when incidents were shown, for other tabs and the next visit, where the browser keeps it. */
function remember(seenAt: number): number {
  try {
    localStorage.setItem(SEEN_AT, String(seenAt));
  } catch {
    // It may not.
  }
  return seenAt;
}

function remembered(): State {
  try {
    return { ...NOTHING, seenAt: Number(localStorage.getItem(SEEN_AT)) };
  } catch {
    return NOTHING;
  }
}

/** The state, kept by the server while the page is visible. */
export function useLiveState(): readonly [State, (change: Change) => void] {
  const [state, change] = useReducer(changed, undefined, remembered);
  useEffect(() => {
    new Live({
      info: (info) => change({ type: 'info', info }),
      survey: (survey) => change({ type: 'survey', survey, at: Date.now() }),
      status: (status) => change({ type: 'status', status }),
    }).start();
  }, []);
  return [state, change];
}
