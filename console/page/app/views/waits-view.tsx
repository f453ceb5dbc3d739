import type { VNode } from 'preact';
import type { ViewProps } from '../app.js';
import { FRESH_MS } from '../model/incidents.js';
import { waitForest } from '../model/wait-forest.js';
import { DeadlockCard } from '../parts/deadlock-card.js';
import { Nothing } from '../parts/nothing.js';
import { Section } from '../parts/section.js';
import { WaitTree } from '../parts/wait-tree.js';

/** How many trees are shown: those with most calls. */
const MOST_TREES = 50;
/** How many deadlocks are: the last ones. */
const MOST_DEADLOCKS = 10;

/** Who waits for whom, and the deadlocks that were found. */
export function WaitsView({ state, now }: ViewProps): VNode {
  const deadlocks = state.stores.flatMap((store) =>
    store.incidents.filter(({ type, at }) => type === 'cycle' && at > now - FRESH_MS).map((incident) => ({ store, incident })),
  );
  const trees = state.stores.flatMap((store) => waitForest(store).map((lock) => ({ store, lock })));
  return (
    <>
      {deadlocks.length > 0 && (
        <Section title="Deadlocks" note={<span class="muted">{deadlocks.length} in the last hour</span>}>
          {deadlocks.slice(0, MOST_DEADLOCKS).map(({ store, incident }) => (
            <DeadlockCard key={incident.id} store={store} incident={incident} now={now} />
          ))}
        </Section>
      )}
      <Section
        title="Who waits for whom"
        note={<span class="muted">{trees.length > MOST_TREES ? `${MOST_TREES} of ${trees.length} locks` : ''}</span>}
      >
        {trees.length === 0 ? (
          <Nothing state={state} title="Nobody waits">
            Every call has its lock.
          </Nothing>
        ) : (
          <ul class="forest">
            {trees.slice(0, MOST_TREES).map(({ store, lock }) => (
              <WaitTree key={`${store.name} ${lock.key}`} store={store} lock={lock} now={now} />
            ))}
          </ul>
        )}
      </Section>
    </>
  );
}
