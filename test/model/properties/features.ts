/** The features that calls can use together. */
export const FEATURES = [
  'relay',
  'ticket',
  'late ticket',
  'transaction',
  'leader',
  'handle',
  'generator',
  'observable',
  'two keys',
  'minHold',
  'maxHold',
  'reentry: never',
  'outsideLocks',
  'abort',
  'forced release',
  'shutdown',
  'reader',
  'permit',
] as const;

export type Feature = (typeof FEATURES)[number];

/** A set of features, as a number. */
export function featuresOf(...features: readonly (Feature | false)[]): number {
  return features.reduce((set, feature) => (feature ? set | (1 << FEATURES.indexOf(feature)) : set), 0);
}

/** Which features have met: of one call, or of two calls that wanted one key at the same time. */
export class Meetings {
  readonly #met = FEATURES.map(() => 0);

  note(some: number, others: number): void {
    for (let at = 0; at < this.#met.length; at++) {
      this.#met[at] = (this.#met[at] as number) | (some & (1 << at) ? others : 0) | (others & (1 << at) ? some : 0);
    }
  }

  have(one: Feature, other: Feature): boolean {
    return ((this.#met[FEATURES.indexOf(one)] as number) & featuresOf(other)) !== 0;
  }
}
