import type { VNode } from 'preact';
import type { ConnectionStatus, State } from '../model/state.js';
import { linkTo, type Route, type View } from '../route.js';

const TABS: readonly (readonly [View, string])[] = [
  ['now', 'Now'],
  ['hot', 'Hot'],
  ['waits', 'Waits'],
  ['processes', 'Processes'],
];

const STATUS: Readonly<Record<ConnectionStatus, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  polling: 'Polling',
  paused: 'Paused',
  broken: 'No connection',
  expired: 'Signed out',
};

/** The title, the views, and whether what is shown is of now. */
export function Header({ state, route, now }: { readonly state: State; readonly route: Route; readonly now: number }): VNode {
  const active = route.view === 'key' ? 'now' : route.view;
  const deadlocks = state.stores.reduce((sum, store) => sum + store.deadlocks.length, 0);
  return (
    <header class="bar">
      <h1>
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <rect x="4" y="10.5" width="16" height="10.5" rx="2.5" />
          <path d="M8 10.5V7a4 4 0 0 1 8 0v3.5" />
        </svg>
        Locks
      </h1>
      <nav aria-label="Views">
        {TABS.map(([view, label]) => (
          <a key={view} href={linkTo(view)} aria-current={view === active ? 'page' : undefined}>
            {label}
            {view === 'waits' && deadlocks > 0 && (
              <span class="count bad">
                {deadlocks}
                <span class="hidden"> deadlocks</span>
              </span>
            )}
          </a>
        ))}
      </nav>
      <Status state={state} now={now} />
    </header>
  );
}

function Status({ state: { connection, at }, now }: { readonly state: State; readonly now: number }): VNode {
  const seconds = at === undefined ? 0 : Math.max(0, Math.round((now - at) / 1_000));
  return (
    <p class={`status ${connection}`}>
      <span class="dot" aria-hidden="true" />
      {STATUS[connection]}
      {at !== undefined && seconds > 4 && <span class="muted"> · {seconds} s old</span>}
    </p>
  );
}
