import { mapHolds, type Defect, type Parts } from './defect';

function mapKeys(store: Parts, map: (key: string) => string): Partial<Parts> {
  return mapHolds(store, (hold) => ({ ...hold, key: map(hold.key) }));
}

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_KEYS: Readonly<Record<string, Defect>> = {
  'has one lock for all keys': { rule: 'locks on different keys are independent', change: (store) => mapKeys(store, () => 'key') },
  'refuses braces': {
    rule: 'keys with braces, percent signs',
    change: (store) =>
      mapKeys(store, (key) => {
        if (key.includes('{')) {
          throw new TypeError('a brace');
        }
        return key;
      }),
  },
  'cuts keys at NUL': { rule: 'keys that look alike', change: (store) => mapKeys(store, (key) => key.split('\0')[0] as string) },
  'trims keys': { rule: 'keys that look alike', change: (store) => mapKeys(store, (key) => key.trim()) },
  'ignores case': { rule: 'keys that look alike', change: (store) => mapKeys(store, (key) => key.toLowerCase()) },
  'normalizes keys': { rule: 'keys that look alike', change: (store) => mapKeys(store, (key) => key.normalize('NFKC')) },
  'cuts long keys': { rule: 'a key of 1,024 characters', change: (store) => mapKeys(store, (key) => key.slice(0, 255)) },
};
