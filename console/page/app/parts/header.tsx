import type { VNode } from 'preact';
import { span } from '../model/format.js';
import { unseenIncidents } from '../model/incidents.js';
import { pageStatus, type PageStatus } from '../model/page-status.js';
import type { State } from '../model/state.js';
import { linkTo, TITLES, type Route, type View } from '../route.js';

const STATUS: Readonly<Record<PageStatus, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  polling: 'Polling',
  paused: 'Paused',
  broken: 'No connection',
  expired: 'Signed out',
  stale: 'No news',
  degraded: 'Store degraded',
  down: 'Store down',
  unknown: 'Store not known',
};

/** Older news have their age beside the status, in milliseconds. */
const AGE_MS = 4_000;

/** The title, the views, and how far what is shown can be trusted. */
export function Header({ state, route, now }: { readonly state: State; readonly route: Route; readonly now: number }): VNode {
  const active = route.view === 'key' ? 'now' : route.view;
  const unseen = unseenIncidents(state, now);
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
        {(Object.entries(TITLES) as [View, string][]).map(([view, label]) => (
          <a key={view} href={linkTo(view)} aria-current={view === active ? 'page' : undefined}>
            {label}
            {view === 'incidents' && unseen > 0 && (
              <span class="count bad">
                {unseen}
                <span class="hidden"> new</span>
              </span>
            )}
          </a>
        ))}
      </nav>
      <Status state={state} now={now} />
    </header>
  );
}

function Status({ state, now }: { readonly state: State; readonly now: number }): VNode {
  const status = pageStatus(state, now);
  const ageMs = state.at === undefined ? 0 : now - state.at;
  return (
    <p class={`status ${status}`}>
      <span class="dot" aria-hidden="true" />
      {STATUS[status]}
      {ageMs > AGE_MS && <span class="muted"> · {status === 'stale' ? `for ${span(ageMs)}` : `${span(ageMs)} old`}</span>}
    </p>
  );
}
