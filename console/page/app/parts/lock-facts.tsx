import type { ComponentChildren, VNode } from 'preact';
import { printable, sharing } from '../../../../lib/core/words/shown.js';
import type { Inspected } from '../connection/inspect.js';
import { counted, span } from '../model/format.js';
import type { LockRow } from '../model/lock-rows.js';
import { processName, shownProcess } from '../model/processes.js';
import { CopyButton } from './copy-button.js';
import { Pill } from './pill.js';
import { Time } from './time.js';
import { Words } from './words.js';

interface LockFactsProps {
  readonly lockKey: string;
  /** The lock as the processes show it. */
  readonly row: LockRow | undefined;
  /** The lock as the store shows it, where the store was asked. */
  readonly inspected: Inspected | undefined;
  readonly now: number;
}

/** A lock in words: who holds it since when and for how long, at which fence, and who is next. */
export function LockFacts({ lockKey, row, inspected, now }: LockFactsProps): VNode {
  const grant = grantOf(row, inspected);
  return (
    <dl class="facts">
      <Fact name="Key">
        <code>{printable(lockKey)}</code> <CopyButton text={lockKey} what="key" />
      </Fact>
      <Fact name="Holder">{row?.holders[0] ? <Holders row={row} /> : <Unanswered row={row} inspected={inspected} />}</Fact>
      {row?.name && <Fact name="Counted as">{row.name}</Fact>}
      <Shared row={row} inspected={inspected} />
      {grant && <GrantFacts grant={grant} now={now} />}
      <Fact name="Queue">
        <Queue calls={row?.waiting.length ?? 0} waiters={inspected?.lock?.waiters ?? []} />
      </Fact>
    </dl>
  );
}

/** How many share the lock: as many as the processes say, or its store, whichever are more. */
function Shared({ row, inspected }: Pick<LockFactsProps, 'row' | 'inspected'>): VNode | null {
  const { shares = row?.shares, holds = 0 } = inspected?.lock ?? {};
  return shares ? <Fact name="Shared">{sharing(shares, Math.max(holds, row?.count ?? 0))}</Fact> : null;
}

interface Grant {
  readonly fence: number;
  readonly since: number;
  /** Undefined where leases do not end by time. */
  readonly until: number | undefined;
}

/** The facts of the grant: from the process that holds the lock, or else from the store. */
function grantOf(row: LockRow | undefined, inspected: Inspected | undefined): Grant | undefined {
  if (row?.fence !== undefined && row.since !== undefined) {
    return { fence: row.fence, since: row.since, until: row.until };
  }
  const { at = 0, lock } = inspected ?? {};
  return lock
    ? { fence: lock.fence, since: at - lock.heldMs, until: lock.remainingMs === undefined ? undefined : at + lock.remainingMs }
    : undefined;
}

function GrantFacts({ grant: { fence, since, until }, now }: { readonly grant: Grant; readonly now: number }): VNode {
  return (
    <>
      <Fact name="Held since">
        <Time at={since} /> <span class="muted">({span(now - since)})</span>
      </Fact>
      <Fact name="Lease">{until === undefined ? 'without an end' : until > now ? `${span(until - now)} left` : 'over'}</Fact>
      <Fact name="Fence">
        <code>{fence}</code> <CopyButton text={String(fence)} what="fence" />
      </Fact>
    </>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): VNode {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Holders({ row }: { readonly row: LockRow }): VNode {
  return (
    <>
      {row.holders.map((holder, at) => (
        <p key={at}>
          <strong>{holder.site}</strong> on {processName(row.store, holder.process)}
          {holder.isSilent && (
            <>
              {' '}
              <Pill tone="warn">does not answer</Pill>
            </>
          )}
          {holder.description !== undefined && (
            <span class="under mono">
              <Words text={holder.description} /> <CopyButton text={holder.description} what="description" />
            </span>
          )}
        </p>
      ))}
    </>
  );
}

/** A holder of whom no process says anything: the store may know. */
function Unanswered({ row, inspected }: Pick<LockFactsProps, 'row' | 'inspected'>): VNode {
  const by = inspected?.lock?.by ?? row?.foundBy;
  if (by !== undefined) {
    return (
      <>
        <Words text={by} /> <Pill tone="warn">no process answers for it</Pill>
      </>
    );
  }
  return <span class="muted">{inspected ? 'nobody' : 'not known yet'}</span>;
}

/** How many calls wait, and the processes of others that wait in the order of the store, where it keeps one. */
function Queue({ calls, waiters }: { readonly calls: number; readonly waiters: readonly string[] }): VNode {
  return (
    <>
      {calls > 0 ? counted(calls, 'call') : waiters.length > 0 ? counted(waiters.length, 'process', 'processes') : 'nobody'}
      {waiters.length > 0 && (
        <ol class="queue-order">
          {waiters.map((waiter, at) => (
            <li key={`${waiter} ${at}`}>
              {shownProcess(waiter)} {at === 0 && <Pill tone="plain">next</Pill>}
            </li>
          ))}
        </ol>
      )}
    </>
  );
}
