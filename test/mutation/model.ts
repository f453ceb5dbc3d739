// The model and the explorer in small pieces, so that a mutant that a piece finds needs no other.
import * as fc from 'fast-check';
import { explore } from '../explorer/explorer.js';
import { SCOPES } from '../explorer/scope.js';
import { Server } from '../explorer/server.js';
import { callsOf } from '../model/properties/calls.js';
import { crowds, relays } from '../model/properties/crowds.js';
import { buildLibrary } from '../model/properties/library.js';
import { together } from '../model/properties/together.js';
import { makeSlots, World } from '../model/properties/world.js';

/** Scenarios of each piece. */
const RUNS = 4;
const MOST_STATES = 200;

/** Made before any test: what a module does as it is loaded is not what a test covers. */
const slots = makeSlots(await buildLibrary());

describe('the model', () => {
  const kinds = [
    ['crowds', crowds],
    ['relays', relays],
    ['features together', together],
    ['calls', callsOf(false)],
    ['calls among faults', callsOf(true)],
  ] as const;
  test.each(kinds)('%s', async (_, scenarios) => {
    const property = fc.asyncProperty(scenarios, (scenario) => new World(slots, scenario).run());
    await fc.assert(property, { seed: 1, numRuns: RUNS, endOnFailure: true });
  });
});

describe('the explorer', () => {
  test.each(Object.values(SCOPES))('$name', async (scope) => {
    expect(explore(scope, await Server.with(), MOST_STATES).violation).toBeUndefined();
  });
});
