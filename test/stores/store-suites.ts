import 'reflect-metadata';
import { STORES, type StoreKind, type StorePlace } from '../support/stores';
import { faultsSuite } from './faults-suite';
import { fuzzSuite } from './fuzz-suite';
import { lockingSuite } from './locking-suite';
import { peersSuite } from './peers-suite';
import { sharingSuite } from './sharing-suite';
import { travelSuite } from './travel-suite';
import { waitingSuite } from './waiting-suite';

const SUITES = { fuzzSuite };
const SUITES_OF_MESSAGES = { peersSuite };
const SUITES_OF_TICKETS = { travelSuite };
const SUITES_OF_SHARING = { sharingSuite };
const LONG_SUITES = { lockingSuite };
const LONG_SUITES_OF_ORDER = { waitingSuite };
const SUITES_OF_SERVERS = { faultsSuite };

/**
 * All suites of a store that are for its kind but the published contract, on servers of its own. Each store has a spec
 * file that calls this: they run at the same time.
 */
export function storeSuites(name: string): void {
  const kind = STORES[name] as StoreKind;
  const { start, offers, hasServers, isBrief } = kind;
  // These suites break connections, of which the stores of the other suites leave a thousand. Servers of a quorum do
  // not count for a while afterwards.
  const breaksFirst = hasServers && name !== 'quorum';
  const suites = {
    ...(breaksFirst && SUITES_OF_SERVERS),
    ...SUITES,
    ...(offers.includes('messages') && SUITES_OF_MESSAGES),
    ...(offers.includes('tickets') && SUITES_OF_TICKETS),
    ...(offers.includes('permits') && SUITES_OF_SHARING),
    ...(!isBrief && LONG_SUITES),
    ...(offers.includes('turns') && !isBrief && LONG_SUITES_OF_ORDER),
    ...(hasServers && !breaksFirst && SUITES_OF_SERVERS),
  };

  describe(`the ${name} store`, () => {
    let place: StorePlace;
    beforeAll(async () => {
      place = await start();
    });
    afterAll(() => place.stop());

    describe.each(Object.entries(suites))('%s', (_suite, suite) => suite(() => place, kind));
  });
}
