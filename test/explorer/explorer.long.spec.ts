/** @jest-environment-options {"allowedStopMs": 600000} */
// Its clock is its own, and what it finds counts on every machine.
import { stop } from 'esbuild';
import { DEFECTS } from './defects.js';
import { explore } from './explorer.js';
import { reportOf } from './report.js';
import { SCOPES } from './scope.js';
import { Server } from './server.js';

/** `npm run explore` looks at more. */
const MOST_STATES = 5_000;
/** Every defect shows within so many. */
const MOST_STATES_OF_DEFECTS = 30_000;

describe('the lock table', () => {
  afterAll(() => stop());

  test.each(Object.values(SCOPES))(
    'keeps its promises in every state of $name, as far as it is explored',
    async (scope) => {
      const exploration = explore(scope, await Server.with(), MOST_STATES);
      process.stdout.write(`${reportOf(scope, exploration, 0)}\n`);
      expect(exploration.violation).toBeUndefined();
      expect(exploration.isComplete || exploration.states >= MOST_STATES).toBe(true);
    },
    240_000,
  );

  test.each(DEFECTS)(
    'does not keep them where $defect',
    async ({ edits, scope }) => {
      const { violation } = explore(scope, await Server.with(edits), MOST_STATES_OF_DEFECTS);
      expect(violation?.what).toEqual(expect.any(String));
    },
    240_000,
  );
});
