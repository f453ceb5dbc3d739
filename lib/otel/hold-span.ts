import { SpanStatusCode, type Span } from '@opentelemetry/api';
import type { LockLostError } from '../core/errors.js';
import type { LockedSection } from '../core/telemetry.js';
import { ERROR_TYPE } from './attributes.js';

/** The span of a call that has its locks. It ends with the code of the call, or before, when a lock is lost. */
export class HoldSpan {
  readonly #span: Span;
  /** Undefined for a span that is not sampled: the signal is made when it is read. */
  readonly #signal: AbortSignal | undefined;
  #hasEnded = false;

  constructor(span: Span, section: LockedSection) {
    this.#span = span;
    this.#signal = span.isRecording() ? section.signal : undefined;
    if (this.#signal?.aborted) {
      this.#lose();
    }
    this.#signal?.addEventListener('abort', this.#lose);
  }

  /** Runs the code. */
  endsWith(run: () => unknown): void {
    try {
      const result = run();
      if (result instanceof Promise) {
        result.then(
          () => this.#end(undefined),
          (error: unknown) => this.#end(typeOf(error)),
        );
      } else {
        this.#end(undefined);
      }
    } catch (error) {
      this.#end(typeOf(error));
    }
  }

  readonly #lose = (): void => this.#end((this.#signal?.reason as LockLostError | undefined)?.reason);

  #end(errorType: string | undefined): void {
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    this.#signal?.removeEventListener('abort', this.#lose);
    if (errorType !== undefined) {
      this.#span.setAttribute(ERROR_TYPE, errorType);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}

/** The class of an error. Its message may have keys and personal data in it. */
function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : '_OTHER';
}
