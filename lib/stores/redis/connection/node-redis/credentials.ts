/** Where a client of node-redis has its user and password from. */
export interface CredentialsProvider {
  readonly type: string;
  credentials(): Promise<unknown>;
  subscribe(listener: unknown): Promise<readonly [unknown, { dispose(): void }]>;
  onReAuthenticationError(error: unknown): void;
}

/** The same provider; tells when it is asked, and when its answer is there and the server is spoken to. `signal` ends its subscription. */
export function watchedProvider(
  provider: CredentialsProvider,
  signal: AbortSignal,
  tell: (event: 'credentials' | 'connect') => void,
): CredentialsProvider {
  const watch = async <T>(ask: () => Promise<T>): Promise<T> => {
    tell('credentials');
    const answer = await ask();
    tell('connect');
    return answer;
  };
  return {
    type: provider.type,
    credentials: () => watch(() => provider.credentials()),
    subscribe: (listener) =>
      watch(async () => {
        const [credentials, subscription] = await provider.subscribe(listener);
        // node-redis itself keeps that of a client which ended by itself, or before the answer came.
        const dispose = (): void => subscription.dispose();
        if (signal.aborted) {
          dispose();
        } else {
          signal.addEventListener('abort', dispose, { once: true });
        }
        return [credentials, { dispose: () => undefined }];
      }),
    onReAuthenticationError: (error) => provider.onReAuthenticationError(error),
  };
}
