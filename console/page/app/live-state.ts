import { useEffect, useReducer } from 'preact/hooks';
import { Live } from './connection/live.js';
import type { Message } from './connection/messages.js';
import { merge } from './model/merge.js';
import { searched, type SearchNews } from './model/searched.js';
import { NOTHING, type ConnectionStatus, type State } from './model/state.js';

/** What changes the state. */
export type Change =
  | { readonly type: 'message'; readonly message: Message; readonly at: number }
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
    case 'message':
      return received(state, change.message, change.at);
  }
}

function received(state: State, message: Message, at: number): State {
  if (message.kind === 'page') {
    return { ...state, info: message };
  }
  return message.kind === 'survey' ? merge(state, message, at) : state;
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
      message: (message) => change({ type: 'message', message, at: Date.now() }),
      status: (status) => change({ type: 'status', status }),
    }).start();
  }, []);
  return [state, change];
}
