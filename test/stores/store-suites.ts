import 'reflect-metadata';
import { STORES, type StoreKind, type StorePlace } from '../support/stores';
import { faultsSuite } from './faults-suite';
import { fuzzSuite } from './fuzz-suite';
import { lockingSuite } from './locking-suite';
import { storeContract } from './store-contract';
import { turnsContract } from './turns-contract';
import { waitingSuite } from './waiting-suite';

const SUITES = { storeContract, fuzzSuite };
const LONG_SUITES = { lockingSuite };
const SUITES_OF_ORDER = { turnsContract };
const LONG_SUITES_OF_ORDER = { waitingSuite };
const SUITES_OF_SERVERS = { faultsSuite };

/** All suites of a store that are for its kind, on servers of its own. Each store has a spec file that calls this: they run at the same time. */
export function storeSuites(name: string): void {
  const { start, keepsOrder, hasServers, isBrief } = STORES[name] as StoreKind;
  const suites = {
    ...SUITES,
    ...(!isBrief && LONG_SUITES),
    ...(keepsOrder && SUITES_OF_ORDER),
    ...(hasServers && SUITES_OF_SERVERS),
    ...(keepsOrder && !isBrief && LONG_SUITES_OF_ORDER),
  };

  describe(`the ${name} store`, () => {
    let place: StorePlace;
    beforeAll(async () => {
      place = await start();
    });
    afterAll(() => place.stop());

    describe.each(Object.entries(suites))('%s', (_suite, suite) => suite(() => place));
  });
}
