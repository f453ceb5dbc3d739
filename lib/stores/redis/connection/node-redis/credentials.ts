import { readCredentials, type CredentialsFunction } from '../credentials.js';

interface Credentials {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** What a provider calls with new credentials. */
interface CredentialsListener {
  onNext(credentials: Credentials): void;
  onError(error: Error): void;
}

/** Where a client of node-redis has its user and password from. */
export interface CredentialsProvider {
  readonly type: string;
  credentials(): Promise<Credentials>;
  subscribe(listener: CredentialsListener): Promise<readonly [Credentials, { dispose(): void }]>;
  onReAuthenticationError(error: unknown): void;
}

/** Options of a client that asks a function of the store; none without one. */
export function fromFunction(credentials: CredentialsFunction | undefined): { readonly credentialsProvider?: CredentialsProvider } {
  if (!credentials) {
    return {};
  }
  // A provider of this type is asked for nothing else.
  const provider = { type: 'async-credentials-provider', credentials: () => readCredentials(credentials) };
  return { credentialsProvider: provider as CredentialsProvider };
}

/**
 * The same provider; tells when it is asked, and when its answer is there and the server is spoken to. `signal` ends its subscription, and
 * while the client is `subscribed` it gets no new credentials: version 5 would be refused an AUTH on that connection.
 */
export function watchedProvider(
  provider: CredentialsProvider,
  signal: AbortSignal,
  tell: (event: 'credentials' | 'connect') => void,
  subscribed: () => boolean,
): CredentialsProvider {
  const watch = async <T>(ask: () => Promise<T>): Promise<T> => {
    tell('credentials');
    const answer = await ask();
    tell('connect');
    return answer;
  };
  return {
    type: provider.type,
    credentials: () => watch(async () => withUser(await provider.credentials())),
    subscribe: (listener) =>
      watch(async () => {
        const [credentials, subscription] = await provider.subscribe({
          onNext: (next) => subscribed() || listener.onNext(withUser(next)),
          onError: (error) => listener.onError(error),
        });
        // node-redis itself keeps that of a client which ended by itself, or before the answer came.
        const dispose = (): void => subscription.dispose();
        if (signal.aborted) {
          dispose();
        } else {
          signal.addEventListener('abort', dispose, { once: true });
        }
        return [withUser(credentials), { dispose: () => undefined }];
      }),
    onReAuthenticationError: (error) => provider.onReAuthenticationError(error),
  };
}

/** A server without a password takes one for the default user by name only, and version 6 does not name it where it speaks RESP 2. */
function withUser(credentials: Credentials): Credentials {
  return credentials.password === undefined ? credentials : { ...credentials, username: credentials.username ?? 'default' };
}
