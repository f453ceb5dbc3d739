import type { LockHealth } from '../../../../lib/core/words/lock-health.js';
import type { Tile } from '../parts/tiles.js';
import type { StoreState } from './state.js';

/** What the processes say of a store, taken together: the worst of each. */
export function storeFigures({ processes, silent }: StoreState): Tile[] {
  const answering = [...processes.values()].filter(({ id }) => !silent.includes(id));
  const health = answering.flatMap((process) => (process.health ? [process.health] : []));
  return [
    statusTile(health),
    {
      label: 'Answering',
      value: String(answering.length),
      note: silent.length > 0 ? `${silent.length} silent` : undefined,
      tone: silent.length > 0 ? 'warn' : undefined,
    },
    { label: 'Slowest answer', value: most(health, ({ latencyMs }) => latencyMs, ' ms') },
    { label: 'Clock skew', value: most(health, ({ clockSkewMs }) => clockSkewMs && Math.abs(clockSkewMs), ' ms') },
    serversTile(health),
  ];
}

function statusTile(health: readonly LockHealth[]): Tile {
  const worst = (['down', 'degraded', 'up'] as const).find((status) => health.some((each) => each.status === status));
  return { label: 'Locks are', value: worst ?? '–', tone: worst === 'down' ? 'bad' : worst === 'degraded' ? 'warn' : undefined };
}

function serversTile(health: readonly LockHealth[]): Tile {
  const members = health.find((each) => each.members !== undefined)?.members;
  if (members) {
    const usable = members.filter((member) => member.reachable && member.voting !== false && !member.refuses).length;
    return { label: 'Servers', value: `${usable} of ${members.length}`, tone: usable < members.length ? 'warn' : undefined };
  }
  const evicts = health.some((each) => each.evicts === true);
  return { label: 'May evict locks', value: evicts ? 'yes' : 'no', tone: evicts ? 'bad' : undefined };
}

function most(health: readonly LockHealth[], value: (health: LockHealth) => number | undefined, unit: string): string {
  const values = health.flatMap((each) => value(each) ?? []);
  return values.length > 0 ? `${Math.max(...values).toFixed(1)}${unit}` : '–';
}
