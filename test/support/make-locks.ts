import type { Clock } from '../../lib/core/seam/time';
import type { LockStore } from '../../lib/core/seam/lock-store';
import type { OnUnavailable } from '../../lib/core/words/call-options';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockTelemetry } from '../../lib/core/words/lock-telemetry';
import { checkMaxWaiters, type LockModuleOptions } from '../../lib/nest/lock-module.options';
import { LockService } from '../../lib/nest/lock.service';

/** Settings of a test's lock service. */
export interface TestSettings {
  ttl?: number;
  wait?: number;
  maxHold?: number;
  maxWaiters?: LockModuleOptions['maxWaiters'];
  clock?: Clock;
  onUnavailable?: OnUnavailable;
  debug?: (line: string) => void;
  telemetry?: readonly LockTelemetry[];
  deadlocksAfterMs?: number;
  onTrouble?: (trouble: LockTrouble) => void;
  transaction?: LockModuleOptions['transaction'];
}

/** A lock service on a store that is open, without Nest. */
export function makeLocks(store: LockStore, settings: TestSettings = {}): LockService {
  const { ttl = 5_000, wait = 5_000, maxWaiters, onTrouble = () => undefined, clock, onUnavailable, debug, telemetry = [] } = settings;
  const { deadlocksAfterMs = Infinity, maxHold, transaction } = settings;
  const siblings = new Map<string, LockService>();
  const open = { prefix: 'lock', warn: () => undefined };
  const service = new LockService(
    {
      name: 'default',
      store,
      ttl,
      wait,
      maxHold,
      maxWaiters: checkMaxWaiters(maxWaiters),
      onTrouble,
      onUnavailable,
      debug,
      telemetry,
      deadlocksAfterMs,
      transaction,
      open,
      ...(clock && { clock }),
    },
    siblings,
  );
  siblings.set('default', service);
  return service;
}
