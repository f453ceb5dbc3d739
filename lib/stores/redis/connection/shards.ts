import type { Connection } from './connection.js';

/**
 * The servers that have the locks: the one at the other end, or the masters of a cluster in the order of their slots, as far as the client
 * knows. Undefined stands for a master to which the client has given up its connection; asks again which nodes there are, so that it makes
 * another one.
 */
export function shardsOf(connection: Connection): readonly (Connection | undefined)[] {
  const masters = connection.nodes?.('master') ?? [];
  const shards = connection.slots ? inOrder(connection.slots, masters) : masters;
  if (shards.includes(undefined)) {
    connection.refreshSlotsCache?.();
  }
  // A cluster that has not told its slots yet is asked as a whole.
  return shards.length > 0 ? shards : [connection];
}

function inOrder(slots: NonNullable<Connection['slots']>, masters: readonly Connection[]): readonly (Connection | undefined)[] {
  const addresses = new Set(slots.flatMap((nodes) => nodes?.[0] ?? []));
  const known = new Map(masters.map((node) => [`${node.options.host}:${node.options.port}`, node]));
  return [...addresses].map((address) => known.get(address));
}
