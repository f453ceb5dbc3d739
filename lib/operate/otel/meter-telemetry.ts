import { metrics, type MeterProvider } from '@opentelemetry/api';
import type { LockEvent } from '../../core/words/lock-event.js';
import type { LockSource, LockTelemetry, MeasuredOperation } from '../../core/words/lock-telemetry.js';
import { Recorder, keepRecorder, recorderOf } from '../telemetry/recorder.js';
import { MeterInstruments } from './meter-instruments.js';
import { SCOPE } from './attributes.js';

/** The metrics, on a meter of OpenTelemetry. */
export class MeterTelemetry implements LockTelemetry {
  readonly #provider: MeterProvider | undefined;
  #recorder: Recorder | undefined;

  /** Without a provider it takes the global one, as it is when the locks are made. */
  constructor(provider: MeterProvider | undefined) {
    this.#provider = provider;
  }

  watch(source: LockSource): () => void {
    // Not before: the module's options are often made before the SDK is started.
    this.#recorder ??= recorderFor(this.#provider ?? metrics.getMeterProvider());
    return this.#recorder.watch(source);
  }

  event(event: LockEvent): void {
    this.#recorder?.event(event);
  }

  operation(measured: MeasuredOperation): void {
    this.#recorder?.operation(measured);
  }
}

function recorderFor(provider: MeterProvider): Recorder {
  const meter = provider.getMeter(SCOPE);
  return recorderOf(meter) ?? keepRecorder(meter, new Recorder(new MeterInstruments(meter)));
}
