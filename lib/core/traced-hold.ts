import { tracingChannel } from 'node:diagnostics_channel';
import { withOutcomeOf, type LockedSection } from './telemetry.js';

/**
 * What subscribers of the tracing channels `'nestjs-distributed-lock:wait'` and `'nestjs-distributed-lock:hold'` get.
 * Owners and tickets are not in it.
 */
export interface TracedLock {
  readonly name: string;
  /** The name under which the store is registered. */
  readonly store: string;
  readonly place: string;
  /** The key that the call waits for, or the first of those that it has. */
  readonly key: string;
  /** Undefined as long as the call waits, and where it was refused. */
  fence: number | undefined;
}

const holds = tracingChannel<unknown, TracedLock>('nestjs-distributed-lock:hold');

/** Whether anybody has subscribed: nothing is made for nobody. */
export function isHoldTraced(): boolean {
  return holds.hasSubscribers;
}

/** What `body` returns or throws. It runs inside what subscribers bound to the channel; what it returns is not on it. */
export function traceHold<T>(section: LockedSection, body: () => T): T {
  if (!holds.hasSubscribers) {
    return body();
  }
  const { name, store, place, keys, fence } = section;
  const context = { name, store, place, key: keys[0] as string, fence };
  return withOutcomeOf(body, (run) => {
    const settled = async (): Promise<void> => {
      await run();
    };
    holds.tracePromise(settled, context).catch(() => undefined);
  });
}
