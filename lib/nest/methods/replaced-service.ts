import { LockConfigurationError } from '../../core/words/errors.js';
import type { Lock } from '../../core/words/lock.js';
import type { CallOf, LockService } from '../lock.service.js';
import type { ReturnKind } from './return-kind.js';

/**
 * Runs a call where somebody replaced the service. The contract of the service is to run the body or to throw; a mock
 * that does neither would swallow the body.
 */
export async function runReplaced(
  service: Partial<LockService>,
  { site, returns }: { readonly site: string; readonly returns: ReturnKind },
  keys: string | readonly string[],
  given: CallOf,
  body: (lock: Lock) => unknown,
): Promise<unknown> {
  const { permits, ...options } = given;
  const method = 'permits' in given ? 'withPermit' : 'withLock';
  if (typeof service[method] !== 'function') {
    throw new LockConfigurationError(
      `${site}: the LockService that was injected has no ${method}(). Replace it with an object that has one.`,
    );
  }
  let ran = false;
  const { onBusy = 'throw', onUnavailable } = options;
  const noted =
    <Args extends unknown[]>(answer: (...args: Args) => unknown) =>
    (...args: Args): unknown => {
      ran = true;
      return answer(...args);
    };
  const watched = {
    ...options,
    wait: onBusy === 'skip' ? (options.wait ?? 0) : options.wait,
    onBusy: onBusy === 'throw' ? onBusy : noted(onBusy === 'skip' ? () => undefined : onBusy),
    onUnavailable: typeof onUnavailable === 'function' ? noted(onUnavailable) : onUnavailable,
  };
  const run = service[method] as (...args: unknown[]) => Promise<unknown>;
  const key = keys.length === 1 ? keys[0] : keys;
  const before = 'permits' in given ? [key, permits] : [key];
  const result: unknown = await run.call(service, ...before, watched, (lock: Lock | undefined) => {
    ran = true;
    if (!lock && returns !== 'promise') {
      throw new LockConfigurationError(
        `${site}: the LockService that was injected gave its body no lock. Let withLock() call it with one.`,
      );
    }
    return body(lock as Lock);
  });
  if (!ran) {
    throw new LockConfigurationError(
      `${site}: the LockService that was injected did not run the method; it seems to be a mock. ` +
        'Import LockModule.forTesting() in the test, or let withLock() of the replacement call its last argument.',
    );
  }
  return result;
}
