import type { Clock } from '../seam/time.js';
import type { AroundCall } from '../seam/wrapped-store.js';
import type { Describe } from '../words/description.js';
import type { LockError } from '../words/errors.js';
import type { LockEvent } from '../words/lock-event.js';
import { guarded, withOutcomeOf } from '../words/guarded.js';
import type { LockedSection, LockEntry, LockSource, LockTelemetry, MeasuredOperation } from '../words/lock-telemetry.js';

/**
 * All telemetry of an application. A part that throws, or leaves a method out, changes nothing for the other parts and
 * the locks.
 */
export class Telemetry implements LockTelemetry {
  readonly #parts: readonly LockTelemetry[];
  /** Whether a part wants the operations of the store. */
  readonly measures: boolean;
  /** Whether a part wants the entries. */
  readonly followsEntries: boolean;

  constructor(parts: readonly LockTelemetry[]) {
    this.#parts = parts.flatMap((part) => (part instanceof Telemetry ? part.#parts : [part]));
    this.measures = this.#parts.some((part) => part.operation !== undefined);
    this.followsEntries = this.#parts.some((part) => part.entered !== undefined);
  }

  /** Returns the function that ends the watching of all parts. */
  watch(source: LockSource): () => void {
    const ends = this.#parts.map((part) => guarded(() => part.watch?.(source)));
    return () => ends.forEach((end) => guarded(() => end?.()));
  }

  event(event: LockEvent): void {
    for (const part of this.#parts) {
      guarded(() => part.event?.(event));
    }
  }

  /** @internal */
  entered(entry: LockEntry): void {
    for (const part of this.#parts) {
      guarded(() => part.entered?.(entry));
    }
  }

  /** The functions that describe calls. */
  get describes(): readonly Describe[] {
    return this.#parts.filter((part) => part.describe !== undefined).map((part) => () => part.describe?.());
  }

  /** Measures the operations of the store that is registered under that name. */
  timing(store: string, clock: Clock): AroundCall {
    return async (answer, operation) => {
      const sentAt = clock.monotonic();
      let error: LockError | undefined;
      try {
        return await answer;
      } catch (failure) {
        error = failure as LockError;
        throw failure;
      } finally {
        if (operation) {
          this.operation({ store, operation, durationMs: clock.monotonic() - sentAt, error });
        }
      }
    };
  }

  operation(measured: MeasuredOperation): void {
    for (const part of this.#parts) {
      guarded(() => part.operation?.(measured));
    }
  }

  /** Returns or throws as `body` does. */
  section<T>(section: LockedSection, body: () => T): T {
    return this.#around('section', section, body);
  }

  /** Returns or throws as `body` does. */
  resume<T>(section: LockedSection, body: () => T): T {
    return this.#around('resume', section, body);
  }

  #around<T>(method: 'section' | 'resume', section: LockedSection, body: () => T): T {
    let run = body;
    for (const part of this.#parts) {
      if (part[method]) {
        const inner = run;
        run = () => withOutcomeOf(inner, (once) => part[method]?.(section, once));
      }
    }
    return run();
  }
}
