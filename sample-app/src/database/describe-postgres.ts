/** A database of a PostgreSQL server, for people; without credentials. */
export function describePostgres(url: string): string {
  const { host, pathname } = new URL(url);
  return `PostgreSQL at ${host || 'the local socket'}, database ${pathname.slice(1) || 'by default'}`;
}
