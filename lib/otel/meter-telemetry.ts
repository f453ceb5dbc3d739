import { metrics, type MeterProvider } from '@opentelemetry/api';
import type { LockTelemetry } from '../core/telemetry.js';
import { checkMethods, checkOptions } from '../telemetry/check-options.js';
import { Recorder } from '../telemetry/recorder.js';
import { keepRecorder, recorderOf } from '../telemetry/shared-recorder.js';
import { MeterInstruments } from './meter-instruments.js';

const SCOPE = 'nestjs-distributed-lock';

/** Options of `otelMetrics`. */
export interface OtelMetricsOptions {
  /** Where the metrics go. Default: the global one, as it is when the application is made. */
  meterProvider?: MeterProvider | undefined;
}

/**
 * The metrics of docs/operations/metrics.md, for `LockModule`'s option `telemetry`. Start the SDK before the
 * application: locks that were made before have no metrics. Throws `LockConfigurationError` for wrong options.
 */
export function otelMetrics(options: OtelMetricsOptions = {}): LockTelemetry {
  checkOptions('otelMetrics', options, ['meterProvider']);
  const { meterProvider } = options;
  checkMethods('otelMetrics: meterProvider', meterProvider, ['getMeter'], 'Pass a MeterProvider of OpenTelemetry, or leave it out.');
  let recorder: Recorder | undefined;
  return {
    watch(source) {
      // Not before: the module's options are often made before the SDK is started.
      recorder ??= recorderFor(meterProvider ?? metrics.getMeterProvider());
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
