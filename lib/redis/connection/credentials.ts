import { wrongOption } from '../../core/words/check-options.js';
import { within } from '../../kit/no-reply.js';
import { messageOf } from '../../kit/refusals.js';

/** User and password of a connection to Redis. */
export interface RedisCredentials {
  /** Default: the user `default`. */
  readonly username?: string | undefined;
  readonly password: string;
}

/** Answers with user and password; is called for each connection that is made. */
export type CredentialsFunction = () => RedisCredentials | Promise<RedisCredentials>;

/** How long a function or provider of credentials may take, in milliseconds: it may ask another service. */
export const CREDENTIALS_MS = 10_000;

/** Why there is no connection, where its user and password are not known. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError';
}

/** The function of an option `credentials`; throws `LockConfigurationError` for anything else. */
export function checkCredentials(credentials: unknown, store: string): CredentialsFunction | undefined {
  if (credentials === undefined || typeof credentials === 'function') {
    return credentials as CredentialsFunction | undefined;
  }
  throw wrongOption(
    `${store}: credentials`,
    credentials,
    'Pass a function that answers { username, password }, or a promise of it: it is called for each connection.',
  );
}

/** Calls the function; rejects with a `CredentialsError` where it throws, takes too long, or answers something else. */
export async function readCredentials(credentials: CredentialsFunction): Promise<RedisCredentials> {
  try {
    const tooLate = (): Error => new Error(`it did not answer within ${CREDENTIALS_MS} ms`);
    const answer: unknown = await within(CREDENTIALS_MS, Promise.resolve(credentials()), tooLate);
    const { username, password } = Object(answer) as Readonly<Record<string, unknown>>;
    if (typeof password !== 'string' || (username !== undefined && typeof username !== 'string')) {
      // The values of the answer are secrets.
      throw new Error('it has to answer { username, password }, of which both are texts, and username may be missing');
    }
    return { username, password };
  } catch (error) {
    throw new CredentialsError(`the function 'credentials' of the store failed: ${messageOf(error as Error)}`);
  }
}
