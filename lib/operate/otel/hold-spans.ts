import {
  context,
  createContextKey,
  trace,
  type Attributes,
  type Tracer,
  SpanStatusCode,
  type Context,
  type Span,
} from '@opentelemetry/api';
import type { LockEvent } from '../../core/words/lock-event.js';
import { guarded } from '../../core/words/guarded.js';
import type { LockedSection, LockTelemetry } from '../../core/words/lock-telemetry.js';
import { LOCK, SITE, ERROR_TYPE } from './attributes.js';
import type { LockLostError } from '../../core/words/errors.js';

/** The span of a call that has its locks. It ends with the code of the call, or before, when a lock is lost. */
export class HoldSpan {
  /** The context of code that runs inside the span. */
  readonly context: Context;
  readonly #span: Span;
  readonly #section: LockedSection;
  #hasEnded = false;

  constructor(span: Span, inside: Context, section: LockedSection) {
    this.#span = span;
    this.context = inside;
    this.#section = section;
  }

  /** A lock of that store was lost, perhaps the lock of this span. */
  seesLoss(store: string): void {
    // The signal is made when it is read, so not for each call.
    if (store === this.#section.store && this.#section.signal.aborted) {
      this.end((this.#section.signal.reason as LockLostError).reason);
    }
  }

  /** `errorType` says why it is an error. */
  end(errorType: string | undefined): void {
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    if (errorType !== undefined) {
      this.#span.setAttribute(ERROR_TYPE, errorType);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}

/** The key for the context of code that runs inside a lock: the span of that lock. */
const HOLD = createContextKey('nestjs-distributed-lock hold');

/** A span for each call that has its locks, which is the parent of the spans of its code. */
export class HoldSpans implements LockTelemetry {
  readonly #tracer: () => Tracer;
  readonly #showsKeys: boolean;
  /** The spans of sections whose code runs. */
  readonly #running = new Map<LockedSection, HoldSpan>();

  constructor(tracer: () => Tracer, showsKeys: boolean) {
    this.#tracer = tracer;
    this.#showsKeys = showsKeys;
  }

  section(section: LockedSection, run: () => unknown): void {
    const outer = context.active();
    const span = this.#tracer().startSpan(`lock ${section.name}`, { attributes: this.#attributesOf(section) }, outer);
    const hold = new HoldSpan(span, trace.setSpan(outer, span).setValue(HOLD, span), section);
    this.#running.set(section, hold);
    const end = (errorType: string | undefined): void => {
      this.#running.delete(section);
      // Core guards this function no more, since it is called when the code has ended.
      guarded(() => hold.end(errorType));
    };
    try {
      const result = context.with(hold.context, run);
      if (result instanceof Promise) {
        result.then(
          () => end(undefined),
          (error: unknown) => end(typeOf(error)),
        );
      } else {
        end(undefined);
      }
    } catch (error) {
      end(typeOf(error));
    }
  }

  /**
   * Runs code that is not inside the span yet, such as a step of a generator: each step runs where the next value is
   * asked for.
   */
  resume(section: LockedSection, run: () => unknown): void {
    const hold = this.#running.get(section);
    if (!hold || context.active().getValue(HOLD) === hold.context.getValue(HOLD)) {
      run();
    } else {
      context.with(hold.context, run);
    }
  }

  /** The code goes on after a loss, and its span does not. */
  event({ type, store }: LockEvent): void {
    if (type === 'lost') {
      this.#running.forEach((hold) => hold.seesLoss(store));
    }
  }

  #attributesOf({ name, store, mode, keys, fence, ttlMs, waitedMs, contended, site }: LockedSection): Attributes {
    return {
      [LOCK.name]: name,
      [LOCK.store]: store,
      [LOCK.mode]: mode,
      ...(mode !== 'permit' && { [LOCK.fence]: fence }),
      [LOCK.ttlMs]: ttlMs,
      [LOCK.waitMs]: waitedMs,
      [LOCK.contended]: contended,
      [SITE]: site,
      ...(this.#showsKeys && (keys.length === 1 ? { [LOCK.key]: keys[0] } : { [LOCK.keys]: [...keys] })),
    };
  }
}

/** The class of an error. Its message may have keys and personal data in it. */
function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : '_OTHER';
}
