import { metrics, type MeterProvider } from '@opentelemetry/api';
import type { LockTelemetry } from '../../core/words/lock-telemetry.js';
import { Recorder, keepRecorder, recorderOf } from '../telemetry/recorder.js';
import { MeterInstruments } from './meter-instruments.js';
import { SCOPE } from './attributes.js';

/** The metrics, on a meter of OpenTelemetry; without a provider on the global one, as it is when the locks are made. */
export function meterTelemetry(provider: MeterProvider | undefined): LockTelemetry {
  let recorder: Recorder | undefined;
  return {
    watch: (source) => {
      // Not before: the module's options are often made before the SDK is started.
      recorder ??= recorderFor(provider ?? metrics.getMeterProvider());
      return recorder.watch(source);
    },
    event: (event) => recorder?.event(event),
    operation: (measured) => recorder?.operation(measured),
  };
}

function recorderFor(provider: MeterProvider): Recorder {
  const meter = provider.getMeter(SCOPE);
  return recorderOf(meter) ?? keepRecorder(meter, new Recorder(new MeterInstruments(meter)));
}
