import { isSpanContextValid, trace, TraceFlags } from '@opentelemetry/api';
import type { Description } from '../../core/words/description.js';
import type { LockTelemetry } from '../../core/words/lock-telemetry.js';

/** Describes a call by the trace that it is part of, where that is sampled, and the span in which it is made. */
export class TraceIds implements LockTelemetry {
  describe(): Description | undefined {
    const made = trace.getActiveSpan()?.spanContext();
    return made && isSpanContextValid(made) && made.traceFlags & TraceFlags.SAMPLED
      ? { trace: made.traceId, span: made.spanId }
      : undefined;
  }
}
