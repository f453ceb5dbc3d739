import { LockConfigurationError, LockStoreError, type LockError } from '../core/words/errors.js';
import { isForbidden, plainWords } from '../redis/connection/redis-errors.js';
import type { QuorumServer } from './members/quorum-server.js';

/** A server that gave no answer that counts, and why. */
export interface Failure {
  readonly server: QuorumServer;
  readonly error: LockError;
}

/** The error of a command that has no answer from a majority. `cast` says whether a server may have carried it out. */
export function tooFew(key: string, servers: number, failures: readonly Failure[], cast: boolean): LockError {
  const most = (servers - 1) / 2;
  const refusals = failures.filter(({ error }) => error instanceof LockConfigurationError);
  const [first] = refusals;
  if (first && refusals.length > most) {
    return atServer(first);
  }
  const subject = key === '' ? '' : `Lock "${key}": `;
  const why = failures.length > most ? `no more than ${most} may be missing` : 'the others do not agree';
  // Pass the NOPERM error on as cause: the caller then retries key by key.
  const cause = failures.find(({ error }) => isForbidden(error)) ?? failures[0];
  const reasons = failures.map(({ server, error }) => `${server.name}: ${reasonOf(error)}`);
  return new LockStoreError(
    `${subject}${failures.length} of ${servers} servers gave no answer that counts, and ${why}. ${reasons.join('; ')}.` +
      (failures.some(({ error }) => isSilent(error)) ? ' Make sure that most of them run and can be reached from here.' : ''),
    key,
    { cause: cause?.error.cause, unknown: cast || failures.some(({ error }) => error instanceof LockStoreError && error.unknown) },
  );
}

/** A copy of the error, with the name of the server. */
export function atServer({ server, error }: Failure): LockError {
  const detail = `${server.name} of the quorum: ${error.detail}`;
  const { cause } = error;
  return error instanceof LockStoreError
    ? new LockStoreError(detail, error.key, { cause, unknown: error.unknown })
    : new LockConfigurationError(detail, error.key, { cause, ofStore: (error as LockConfigurationError).ofStore });
}

/** Whether a server gave no answer at all. */
function isSilent({ cause }: LockError): boolean {
  return cause instanceof Error && cause.name !== 'ReplyError';
}

function reasonOf({ cause, detail }: LockError): string {
  const said = (cause as { message?: unknown } | undefined)?.message;
  return typeof said === 'string' ? plainWords(said) : detail;
}
