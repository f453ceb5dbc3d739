import { withGrants, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_HEALTH: Readonly<Record<string, Defect>> = {
  'measures in microseconds': {
    rule: 'health measures in milliseconds',
    change: () => ({ health: async () => ({ latencyMs: 0.3, clockSkewMs: Date.now() * 999 }) }),
  },
  'names the holders': {
    rule: 'health names no key',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        health: async () => ({ latencyMs: 0.3, holders: [...held.values()].map(({ by }) => by) }),
      })),
  },
};
