import { readdirSync } from 'node:fs';
import { GROUPS, STORES } from '../support/stores';

test.each(Object.keys(STORES))('the %s store has files that run its suites and the contract', (name) => {
  const file = name.replaceAll(' ', '-');
  expect(readdirSync('test/stores')).toEqual(expect.arrayContaining([`${file}.spec.ts`, `${file}-contract.spec.ts`]));
});

test.each(Object.keys(GROUPS))('the %s store has a file that runs the contract', (name) => {
  expect(readdirSync('test/stores')).toContain(`${name.replaceAll(' ', '-')}-contract.spec.ts`);
});
