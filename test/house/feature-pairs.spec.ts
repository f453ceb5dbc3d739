import { existsSync, readFileSync } from 'node:fs';
import { PAIRS } from '../model/pairs';
import { FEATURES } from '../model/properties/features';

const TEST = /^(test\/\S+\.ts): (.+)$/;
const nameOf = (one: string, other: string): string => [one, other].toSorted().join(' × ');

test('each two features are in the table, once', () => {
  const pairs = FEATURES.flatMap((one, at) => FEATURES.slice(at + 1).map((other) => nameOf(one, other)));
  expect(PAIRS.map(([one, other]) => nameOf(one, other)).toSorted()).toEqual(pairs.toSorted());
});

test('each pair names tests that are there, each once, or why the two cannot meet', () => {
  for (const [one, other, ...tests] of PAIRS) {
    const named = tests.map((name) => TEST.exec(name));
    const missing = tests.filter((_, at) => {
      const [, file = '', title = ''] = named[at] ?? [];
      return named[at] && !(existsSync(file) && readFileSync(file, 'utf8').includes(title));
    });
    expect({ one, other, missing }).toEqual({ one, other, missing: [] });
    expect(new Set(tests).size).toBe(tests.length);
    // A reason stands alone, and is a sentence.
    expect(named.every(Boolean) ? tests.length : named.length === 1 && /^[A-Z].{20,}\.$/.test(tests[0] ?? '') ? 1 : 0).toBeGreaterThan(0);
  }
});
