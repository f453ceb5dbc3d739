import { SpanStatusCode, type Span } from '@opentelemetry/api';
import type { LockLostError } from '../core/errors.js';
import type { LockedSection } from '../core/telemetry.js';
import { ERROR_TYPE } from './attributes.js';

/** The span of a call that has its locks. It ends with the code of the call, or before, when a lock is lost. */
export class HoldSpan {
  readonly #span: Span;
  #hasEnded = false;

  constructor(span: Span) {
    this.#span = span;
  }

  /** Runs the code. */
  endsWith(section: LockedSection, run: () => unknown): void {
    // A span that is not sampled makes no signal.
    const signal = this.#span.isRecording() ? section.signal : undefined;
    const lose = (): void => this.#end((signal?.reason as LockLostError).reason);
    const end = (errorType?: string): void => {
      signal?.removeEventListener('abort', lose);
      this.#end(errorType);
    };
    if (signal?.aborted) {
      lose();
    }
    signal?.addEventListener('abort', lose);
    try {
      const result = run();
      if (result instanceof Promise) {
        result.then(
          () => end(),
          (error: unknown) => end(typeOf(error)),
        );
      } else {
        end();
      }
    } catch (error) {
      end(typeOf(error));
    }
  }

  #end(errorType: string | undefined): void {
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

/** The class of an error. Its message may have keys and personal data in it. */
function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : '_OTHER';
}
