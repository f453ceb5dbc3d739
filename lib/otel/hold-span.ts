import { SpanStatusCode, type Context, type Span } from '@opentelemetry/api';
import type { LockLostError } from '../core/words/errors.js';
import type { LockedSection } from '../core/words/lock-telemetry.js';
import { ERROR_TYPE } from './attributes.js';

/** The span of a call that has its locks. It ends with the code of the call, or before, when a lock is lost. */
export class HoldSpan {
  /** That of what runs inside it. */
  readonly context: Context;
  readonly #span: Span;
  readonly #section: LockedSection;
  #hasEnded = false;

  constructor(span: Span, context: Context, section: LockedSection) {
    this.#span = span;
    this.context = context;
    this.#section = section;
  }

  /** A lock of that store was lost, perhaps this one. */
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
