import { readFileSync } from 'node:fs';
import { VERSION } from '../../../lib/core/words/version';

test('the version that processes tell each other is that of the package', () => {
  expect(VERSION).toBe((JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version);
});
