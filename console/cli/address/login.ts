/** A user and a password, as far as they are known. */
export interface Login {
  readonly user: string | undefined;
  readonly password: string | undefined;
}

/** The variables of the environment that have the login of the servers. */
export const SERVER_LOGIN = { user: 'LOCKS_USER', password: 'LOCKS_PASSWORD' } as const;

/** Those that have the login of the Sentinels themselves. */
export const SENTINEL_LOGIN = { user: 'LOCKS_SENTINEL_USER', password: 'LOCKS_SENTINEL_PASSWORD' } as const;

/** The login in the environment. An empty variable is none. */
export function loginIn(env: NodeJS.ProcessEnv, names: Readonly<Record<keyof Login, string>> = SERVER_LOGIN): Login {
  return { user: env[names.user] || undefined, password: env[names.password] || undefined };
}

/** The URL with the user and the password of a login, each where it has none itself. */
export function completed(text: string, { user, password }: Login): string {
  const url = new URL(withHost(text));
  const isMissing = { user: user !== undefined && url.username === '', password: password !== undefined && url.password === '' };
  if (url.protocol.startsWith('postgres')) {
    // A URL of PostgreSQL may have no host, and then no user before it either.
    if (isMissing.user && !url.searchParams.has('user')) {
      url.searchParams.set('user', user as string);
    }
    if (isMissing.password && !url.searchParams.has('password')) {
      url.searchParams.set('password', password as string);
    }
    return isMissing.user || isMissing.password ? url.href : text;
  }
  if (isMissing.user) {
    url.username = encodeURIComponent(user as string);
  }
  if (isMissing.password) {
    url.password = encodeURIComponent(password as string);
  }
  return isMissing.user || isMissing.password ? url.href : text;
}

export function hasPassword(text: string): boolean {
  const { password, searchParams } = new URL(withHost(text));
  return password !== '' || searchParams.has('password');
}

/** `redis://` and `redis:///1` lead to this machine, and have no place for a user. */
function withHost(url: string): string {
  return url.replace(/^(rediss?:\/\/)(?=[/?#]|$)/, '$1localhost');
}
