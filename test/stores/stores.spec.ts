import { readdirSync } from 'node:fs';
import { STORES } from '../support/stores';

test.each(Object.keys(STORES))('the %s store has a file that runs its suites', (name) => {
  expect(readdirSync('test/stores')).toContain(`${name.replaceAll(' ', '-')}.spec.ts`);
});
