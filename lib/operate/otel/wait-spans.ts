import { SpanStatusCode, TraceFlags, type Attributes, type Link, type Tracer } from '@opentelemetry/api';
import { traceIn } from '../../core/words/description.js';
import type { LockEvent } from '../../core/words/lock-event.js';
import type { LockTelemetry } from '../../core/words/lock-telemetry.js';
import { ERROR_TYPE, LOCK, SITE } from './attributes.js';

/** To the span in which a lock was taken, where its holder names it. */
function linksTo(holder: string): Link[] | undefined {
  const trace = traceIn(holder);
  return trace?.spanId === undefined
    ? undefined
    : [{ context: { traceId: trace.traceId, spanId: trace.spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true } }];
}

/** A span for each call that waited or was refused, made when that has ended, in the context of its caller. */
export class WaitSpans implements LockTelemetry {
  readonly #tracer: () => Tracer;
  readonly #showsKeys: boolean;

  constructor(tracer: () => Tracer, showsKeys: boolean) {
    this.#tracer = tracer;
    this.#showsKeys = showsKeys;
  }

  event(event: LockEvent): void {
    // A call that waited and was refused has both events.
    if (event.type === 'refused' || (event.type === 'waited' && event.gaveUp === undefined)) {
      this.#trace(event, event.type === 'refused' && !event.skipped ? event.reason : undefined);
    }
  }

  /** `reason` says why it is an error. */
  #trace(event: LockEvent & { type: 'waited' | 'refused' }, reason: string | undefined): void {
    const { name, store, mode, key, site, waitedMs, inside, holder, skipped } = event;
    const attributes: Attributes = {
      [LOCK.name]: name,
      [LOCK.store]: store,
      ...(mode && { [LOCK.mode]: mode }),
      [LOCK.waitMs]: Math.round(waitedMs),
      [SITE]: site,
      ...(inside && { [LOCK.inside]: true }),
      ...(this.#showsKeys && { [LOCK.key]: key }),
      ...(holder && { [LOCK.blockedBy]: holder.by }),
      ...(skipped && { [LOCK.outcome]: 'skipped' }),
      ...(reason !== undefined && { [ERROR_TYPE]: reason }),
    };
    const endTime = Date.now();
    const links = holder && linksTo(holder.by);
    const span = this.#tracer().startSpan(`wait_for lock ${name}`, { attributes, startTime: endTime - waitedMs, ...(links && { links }) });
    if (reason !== undefined) {
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end(endTime);
  }
}
