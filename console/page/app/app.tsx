import { useEffect, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { useNow } from './clock.js';
import { useLiveState, type Change } from './live-state.js';
import type { LockRow } from './model/lock-rows.js';
import type { State } from './model/state.js';
import { Boundary } from './parts/boundary.js';
import { ConnectionNotice } from './parts/connection-notice.js';
import { Empty } from './parts/empty.js';
import { Header } from './parts/header.js';
import { Losses } from './parts/losses.js';
import { StoreNotices } from './parts/store-notices.js';
import { ReleaseDialog } from './parts/release-dialog.js';
import { TraceUrl } from './parts/words.js';
import { titleOf, useRoute, type Route } from './route.js';
import { HotView } from './views/hot-view.js';
import { IncidentsView } from './views/incidents-view.js';
import { KeyView } from './views/key-view.js';
import { NowView } from './views/now-view.js';
import { ProcessesView } from './views/processes-view.js';
import { WaitsView } from './views/waits-view.js';

/** The properties of every view. */
export interface ViewProps {
  readonly state: State;
  readonly now: number;
  readonly change: (change: Change) => void;
  /** Opens the dialog; undefined where this user may not release locks. */
  readonly askRelease: ((row: LockRow) => void) | undefined;
}

export function App(): VNode {
  const [state, change] = useLiveState();
  const route = useRoute();
  const now = useNow(state.connection !== 'paused');
  useEffect(() => void (document.title = titleOf(route)), [route]);
  const [toRelease, setToRelease] = useState<LockRow>();
  const askRelease = state.info?.actions ? setToRelease : undefined;
  return (
    <TraceUrl.Provider value={state.info?.traceUrl}>
      <button type="button" class="hidden skip" onClick={() => document.getElementById('content')?.focus()}>
        Skip to content
      </button>
      <Boundary what="The title" at={state.at}>
        <Header state={state} route={route} now={now} />
      </Boundary>
      <main id="content" tabIndex={-1}>
        <ConnectionNotice state={state} now={now} />
        <Boundary what="What is wrong with the stores" at={state.at}>
          <StoreNotices state={state} now={now} />
        </Boundary>
        {state.at === undefined ? (
          <Empty title={state.connection === 'broken' ? 'No answer yet' : 'Asking the processes …'}>
            Every process that uses the store is asked what it holds.
          </Empty>
        ) : (
          <Boundary key={JSON.stringify(route)} what="This view" at={state.at}>
            <Current route={route} state={state} now={now} change={change} askRelease={askRelease} />
          </Boundary>
        )}
      </main>
      <Boundary what="The news" at={state.at}>
        <Losses losses={state.losses} />
      </Boundary>
      {toRelease && (
        <Boundary what="The dialog" at={state.at}>
          <ReleaseDialog row={toRelease} now={now} hidesKeys={state.info?.hideKeys === true} close={() => setToRelease(undefined)} />
        </Boundary>
      )}
    </TraceUrl.Provider>
  );
}

function Current({ route, ...props }: ViewProps & { readonly route: Route }): VNode {
  switch (route.view) {
    case 'key':
      return <KeyView {...props} store={route.store} lockKey={route.key} />;
    case 'hot':
      return <HotView {...props} />;
    case 'waits':
      return <WaitsView {...props} />;
    case 'incidents':
      return <IncidentsView {...props} />;
    case 'processes':
      return <ProcessesView {...props} />;
    case 'now':
      return <NowView {...props} />;
  }
}
