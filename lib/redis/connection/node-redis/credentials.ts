import { readCredentials, type CredentialsFunction } from '../credentials.js';

interface Credentials {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** Gets new credentials from a provider. */
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
 * A copy of the provider. It tells when credentials are asked for, and when they are there and the server is spoken to.
 * `signal` ends its subscription. While the client is `subscribed` it gets no new credentials: with version 5, the
 * server would refuse an AUTH on that connection.
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
        // node-redis itself keeps the subscription of a client which ended by itself, or before the answer came.
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

/**
 * A server without a password takes a password for the default user only with the user's name, and version 6 does not
 * send the name where it speaks RESP 2.
 */
function withUser(credentials: Credentials): Credentials {
  return credentials.password === undefined ? credentials : { ...credentials, username: credentials.username ?? 'default' };
}
