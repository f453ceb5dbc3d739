import type { VNode } from 'preact';
import { printable } from '../../../../lib/core/words/shown.js';
import { counted, span } from '../model/format.js';
import { processName } from '../model/processes.js';
import type { StoreState } from '../model/state.js';
import { sizeOf, type WaitedLock, type WaitingBranch } from '../model/wait-forest.js';
import { waitsForStore } from '../model/waits-for-store.js';
import { linkToKey } from '../route.js';
import { Pill } from './pill.js';
import { Site } from './site.js';
import { Words } from './words.js';

/** How many of the calls that wait for one lock are shown. */
const MOST_WAITERS = 20;

interface WaitTreeProps {
  readonly store: StoreState;
  readonly lock: WaitedLock;
  readonly now: number;
}

/** A lock, the calls that wait for it, and below each the locks that it holds meanwhile. */
export function WaitTree({ store, lock, now }: WaitTreeProps): VNode {
  const { holder, others, key, waiters, closesCycle } = lock;
  return (
    <li class="waited">
      <p class="waited-lock">
        <a class="mono key" href={linkToKey(store.name, key)}>
          {printable(key)}
        </a>
        {closesCycle && <Pill tone="bad">calls wait for each other</Pill>}
        {!closesCycle && (
          <span class="muted">
            {holder
              ? `${holder.site} on ${processName(store, holder.process)}, held for ${span(now - holder.since)}${others > 0 ? ` and ${others} more` : ''}`
              : waiters.every(({ call }) => waitsForStore(store, call))
                ? ''
                : 'nobody says that it holds it'}
          </span>
        )}
        {!closesCycle && <span class="tag">{counted(sizeOf(lock), 'call')} behind it</span>}
        {!closesCycle && holder?.description !== undefined && (
          <span class="under mono whole">
            <Words text={holder.description} />
          </span>
        )}
      </p>
      {waiters.length > 0 && (
        <ul>
          {waiters.slice(0, MOST_WAITERS).map((branch) => (
            <Waiter key={branch.call.id} store={store} branch={branch} now={now} />
          ))}
          {waiters.length > MOST_WAITERS && <li class="muted more">and {counted(waiters.length - MOST_WAITERS, 'more call')}</li>}
        </ul>
      )}
    </li>
  );
}

function Waiter({ store, branch: { call, blocks }, now }: Omit<WaitTreeProps, 'lock'> & { readonly branch: WaitingBranch }): VNode {
  return (
    <li class="waiter">
      <p>
        <Site call={call} />
        {waitsForStore(store, call) && <Pill tone="warn">waits for the store</Pill>}
        <span class="muted">
          {processName(store, call.process)}, waits {span(now - call.since)}, gives up in {span(call.until - now)}
        </span>
      </p>
      {blocks.length > 0 && (
        <ul>
          {blocks.map((lock) => (
            <WaitTree key={lock.key} store={store} lock={lock} now={now} />
          ))}
        </ul>
      )}
    </li>
  );
}
