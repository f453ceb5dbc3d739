import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { INSTALL_MS, Workshop, type Consumer, type ModuleType } from './consumer.js';
import { COMMAND_MS } from './run.js';

/** Longer than a command may take, whose output is what a failure shows. */
const TEST_MS = COMMAND_MS + 10_000;
const SKIPPED = 'skipped: the store does not offer turns';

const CONFIGS: readonly [ModuleType, string][] = [
  ['module', 'tsconfig.json'],
  ['commonjs', 'tsconfig.commonjs.json'],
];

const workshop = new Workshop();
let author: Consumer;

beforeAll(
  async () => {
    await workshop.pack();
    author = await workshop.consumer('store-author', {}, { 'examples/sqlite': 'store' });
    for (const [type, config] of CONFIGS) {
      // Fails where the types do not fit the functions of a runner.
      await author.node('node_modules/typescript/bin/tsc', '-p', config);
      writeFileSync(join(author.folder, 'out', type, 'package.json'), JSON.stringify({ type }));
    }
  },
  INSTALL_MS + 3 * TEST_MS,
);

afterAll(() => workshop.clear());

describe("the contract in the project of a store's author", () => {
  describe.each(CONFIGS)('as %s', (type) => {
    test(
      'runs with node --test',
      async () => {
        const { stdout } = await author.node('--test', '--test-reporter=tap', `out/${type}/contract.node.js`);
        expect(stdout).toMatch(/^# pass \d{2,}$/m);
        expect(stdout).toMatch(/^# fail 0$/m);
        expect(stdout).toContain(SKIPPED);
      },
      TEST_MS,
    );

    test(
      'runs with jest',
      async () => {
        const { stderr } = await author.node('--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--verbose', `out/${type}`);
        const text = stripVTControlCharacters(stderr);
        expect(text).toMatch(/^Tests: +\d+ skipped, \d{2,} passed/m);
        expect(text).toContain(SKIPPED);
      },
      TEST_MS,
    );
  });

  test(
    'runs with vitest',
    async () => {
      const { stdout } = await author.node('node_modules/vitest/vitest.mjs', 'run', '--reporter=verbose');
      const text = stripVTControlCharacters(stdout);
      expect(text).toMatch(/Tests +\d{2,} passed \| \d+ skipped/);
      expect(text).toContain(SKIPPED);
    },
    TEST_MS,
  );
});
