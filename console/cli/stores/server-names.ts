/** The names of a store's servers in findings. */
export function serverNames(servers: readonly unknown[]): readonly string[] {
  return servers.map((_, at) => (servers.length > 1 ? `server ${at + 1} of ${servers.length}` : 'server'));
}
