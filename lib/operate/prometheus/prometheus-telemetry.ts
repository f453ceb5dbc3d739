import { register as globalRegister, type OpenMetricsContentType, type Registry } from 'prom-client';
import { checkMethods, checkOptions } from '../../core/words/check-options.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import type { LockTelemetry } from '../../core/words/lock-telemetry.js';
import { COUNTERS, HISTOGRAMS, LEVELS, LIMITS, STATES, type Metric } from '../telemetry/metrics.js';
import { Recorder, keepRecorder, recorderOf } from '../telemetry/recorder.js';
import { counterName, prometheusName, RegistryInstruments } from './registry-instruments.js';

/** Options of `prometheusTelemetry`. */
export interface PrometheusOptions {
  /** Where the metrics are registered. Default: the global registry of prom-client. */
  register?: Registry | Registry<OpenMetricsContentType> | undefined;
}

const NAMES = [
  ...[HISTOGRAMS, LEVELS, LIMITS, STATES].flatMap((list) => Object.values<Metric>(list)).map(prometheusName),
  ...Object.values(COUNTERS).map(counterName),
];
/** The metric that the recorder is kept with. */
const KEEPER = prometheusName(LEVELS.holds);

/**
 * The metrics of docs/operations/metrics.md on prom-client, for `LockModule`'s option `telemetry`. Applications that
 * use one registry share its metrics. Throws `LockConfigurationError` for wrong options, and where the registry has
 * a metric of that name from elsewhere.
 */
export function prometheusTelemetry(options: PrometheusOptions = {}): LockTelemetry {
  checkOptions('prometheusTelemetry', options, { register: true });
  checkMethods(
    'prometheusTelemetry: register',
    options.register,
    ['registerMetric', 'getSingleMetric'],
    'Pass a Registry of prom-client, or leave it out.',
  );
  const { register = globalRegister } = options;
  const known = recorderOf(register.getSingleMetric(KEEPER));
  if (known) {
    return known;
  }
  const taken = NAMES.find((name) => register.getSingleMetric(name) !== undefined);
  if (taken !== undefined) {
    throw new LockConfigurationError(
      `prometheusTelemetry: the registry has a metric ${taken} of other code. Give that one another name, or pass another register.`,
    );
  }
  const recorder = new Recorder(new RegistryInstruments(register as Registry));
  // It goes when the registry is cleared, as the metrics do.
  return keepRecorder(register.getSingleMetric(KEEPER) as object, recorder);
}
