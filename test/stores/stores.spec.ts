import { readdirSync } from 'node:fs';
import { GROUPS, STORES } from '../support/stores';

const files = readdirSync('test/stores').map((name) => name.replace('.long.spec.ts', '.spec.ts'));

test.each(Object.keys(STORES))('the %s store has files that run its suites and the contract', (name) => {
  const file = name.replaceAll(' ', '-');
  expect(files).toEqual(expect.arrayContaining([`${file}.spec.ts`, `${file}-contract.spec.ts`]));
});

test.each(Object.keys(GROUPS))('the %s store has a file that runs the contract', (name) => {
  expect(files).toContain(`${name.replaceAll(' ', '-')}-contract.spec.ts`);
});
