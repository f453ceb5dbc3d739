import { SLOTS, slotOf } from '../../scripts/slot-tags.js';

/** The first key of a command, where it is a script that has one. */
export function keyIn([how, , keys, key]: readonly string[]): string | undefined {
  return (how === 'eval' || how === 'evalsha') && Number(keys) > 0 ? key : undefined;
}

/** The slot of a key: of the part in braces alone, where it has one that is not empty. */
export function slotOfKey(key: string): number {
  const opens = key.indexOf('{');
  const closes = opens === -1 ? -1 : key.indexOf('}', opens);
  return slotOf(closes > opens + 1 ? key.slice(opens + 1, closes) : key);
}

/**
 * The node to which an error reply sends a command that was not carried out; a node that does not know its own name
 * leaves the host out.
 */
export interface Redirection {
  readonly how: 'MOVED' | 'ASK';
  readonly slot: number;
  readonly address: string;
}

export function redirectionIn(error: unknown, askedHost: string): Redirection | undefined {
  const message = error instanceof Error && error.name === 'ReplyError' ? error.message : '';
  const [, how, slot, host, port] = /^(MOVED|ASK) (\d+) (.*):(\d+)$/.exec(message) ?? [];
  return how === undefined ? undefined : { how: how as Redirection['how'], slot: Number(slot), address: `${host || askedHost}:${port}` };
}

/** The address of the master of each slot, as far as it is known. */
export type SlotTable = (string | undefined)[];

/** The facts that a node knows of its cluster. */
export interface Topology {
  readonly slots: SlotTable;
  /** The addresses of all nodes, the replicas among them. */
  readonly nodes: ReadonlySet<string>;
}

/** First and last slot of a range, its master, and the replicas of the master. */
type Range = readonly [first: number, last: number, ...nodes: readonly (readonly [host: string | null, port: number])[]];

/** Reads a reply to CLUSTER SLOTS; throws for a reply that names no node. */
export function topologyIn(reply: unknown, askedHost: string): Topology {
  const slots: SlotTable = Array.from({ length: SLOTS }, () => undefined);
  const nodes = new Set<string>();
  for (const [first, last, ...named] of reply as readonly Range[]) {
    const addresses = named.map(([host, port]) => `${host || askedHost}:${port}`);
    addresses.forEach((address) => nodes.add(address));
    slots.fill(addresses[0], first, last + 1);
  }
  if (nodes.size === 0) {
    throw new Error('no node of the cluster has a slot');
  }
  return { slots, nodes };
}

/** The host and the port of an address; a host of IPv6 has colons too. */
export function partsOf(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
}
