import type { Recorder } from './recorder.js';

/** The same in a second copy of this package, which may be in the process too. */
const RECORDER = Symbol.for('nestjs-distributed-lock.recorder');

/**
 * The recorder that was kept with an object of a backend. All applications of a process share it: their gauges are one
 * sum, and nothing is registered twice. It is kept there since it has to live as long as the metrics do.
 */
export function recorderOf(owner: object | undefined): Recorder | undefined {
  return (owner as { readonly [RECORDER]?: Recorder } | undefined)?.[RECORDER];
}

/** Keeps the recorder with that object, and gives it. */
export function keepRecorder(owner: object, recorder: Recorder): Recorder {
  Reflect.defineProperty(owner, RECORDER, { value: recorder, configurable: true });
  return recorder;
}
