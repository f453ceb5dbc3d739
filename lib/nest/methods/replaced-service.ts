import { LockConfigurationError } from '../../core/words/errors.js';
import type { Lock } from '../../core/words/lock.js';
import type { LockService } from '../lock.service.js';
import type { WithLockOptions } from '../lock-service.options.js';
import type { ReturnKind } from './return-kind.js';

/**
 * Runs a call where somebody replaced the service. The contract of the service is to run the body or to throw; a mock
 * that does neither would swallow the body.
 */
export async function runReplaced(
  service: Partial<LockService>,
  { site, returns }: { readonly site: string; readonly returns: ReturnKind },
  keys: string | readonly string[],
  options: WithLockOptions,
  body: (lock: Lock) => unknown,
): Promise<unknown> {
  if (typeof service.withLock !== 'function') {
    throw new LockConfigurationError(
      `${site}: the LockService that was injected has no withLock(). Replace it with an object that has one.`,
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
  const watched: WithLockOptions = {
    ...options,
    wait: onBusy === 'skip' ? (options.wait ?? 0) : options.wait,
    onBusy: onBusy === 'throw' ? onBusy : noted(onBusy === 'skip' ? () => undefined : onBusy),
    onUnavailable: typeof onUnavailable === 'function' ? noted(onUnavailable) : onUnavailable,
  };
  const result: unknown = await service.withLock(keys.length === 1 ? (keys[0] as string) : keys, watched, (lock: Lock | undefined) => {
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
