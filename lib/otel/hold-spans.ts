import { context, createContextKey, trace, type Attributes, type Context, type Tracer } from '@opentelemetry/api';
import type { LockedSection, LockTelemetry } from '../core/telemetry.js';
import { LOCK, PLACE } from './attributes.js';
import { HoldSpan } from './hold-span.js';

/** In the context of what runs inside a lock: the span of that lock. */
const HOLD = createContextKey('nestjs-distributed-lock hold');

/** A span for each call that has its locks, which is the parent of what its code does. */
export class HoldSpans implements LockTelemetry {
  readonly #tracer: () => Tracer;
  readonly #showsKeys: boolean;
  readonly #contexts = new WeakMap<LockedSection, Context>();

  constructor(tracer: () => Tracer, showsKeys: boolean) {
    this.#tracer = tracer;
    this.#showsKeys = showsKeys;
  }

  section(section: LockedSection, run: () => unknown): void {
    const outer = context.active();
    const span = this.#tracer().startSpan(`lock ${section.name}`, { attributes: this.#attributesOf(section) }, outer);
    const inner = trace.setSpan(outer, span).setValue(HOLD, span);
    this.#contexts.set(section, inner);
    new HoldSpan(span, section).endsWith(() => context.with(inner, run));
  }

  /** Code that is not inside the span yet, as that of a generator, of which each step runs where the next value is asked for. */
  resume(section: LockedSection, run: () => unknown): void {
    const inner = this.#contexts.get(section);
    if (!inner || context.active().getValue(HOLD) === inner.getValue(HOLD)) {
      run();
    } else {
      context.with(inner, run);
    }
  }

  #attributesOf({ name, store, keys, fence, ttlMs, waitedMs, contended, place }: LockedSection): Attributes {
    return {
      [LOCK.name]: name,
      [LOCK.store]: store,
      [LOCK.fence]: fence,
      [LOCK.ttlMs]: ttlMs,
      [LOCK.waitMs]: waitedMs,
      [LOCK.contended]: contended,
      [PLACE]: place,
      ...(this.#showsKeys && (keys.length === 1 ? { [LOCK.key]: keys[0] } : { [LOCK.keys]: [...keys] })),
    };
  }
}
