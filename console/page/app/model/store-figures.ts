import { printable } from '../../../../lib/core/words/shown.js';
import type { PeerHealth } from '../../../../lib/operate/peers/survey.js';
import type { Tile } from '../parts/tiles.js';
import type { StoreState } from './state.js';

/** The figures of a store by its processes, taken together: the worst of each. */
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

function statusTile(health: readonly PeerHealth[]): Tile {
  const said = health.map(({ status }) => status);
  // A word of a later version is worse than one that is known to be good.
  const worst = ['down', 'degraded'].find((status) => said.includes(status)) ?? said.find((status) => status !== 'up') ?? said[0];
  const tone = worst === undefined || worst === 'up' ? undefined : worst === 'down' ? 'bad' : 'warn';
  return { label: 'Locks are', value: worst === undefined ? '–' : printable(worst), tone };
}

function serversTile(health: readonly PeerHealth[]): Tile {
  const members = health.find((each) => each.members !== undefined)?.members;
  if (members) {
    const usable = members.filter((member) => member.reachable && member.voting !== false && !member.refuses).length;
    return { label: 'Servers', value: `${usable} of ${members.length}`, tone: usable < members.length ? 'warn' : undefined };
  }
  const evicts = health.some((each) => each.evicts === true);
  return { label: 'May evict locks', value: evicts ? 'yes' : 'no', tone: evicts ? 'bad' : undefined };
}

function most(health: readonly PeerHealth[], value: (health: PeerHealth) => number | undefined, unit: string): string {
  const values = health.flatMap((each) => value(each) ?? []);
  return values.length > 0 ? `${Math.max(...values).toFixed(1)}${unit}` : '–';
}
