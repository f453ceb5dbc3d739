import 'reflect-metadata';
import { STORES, type StorePlace } from '../support/stores';
import { faultsSuite } from './faults-suite';
import { fuzzSuite } from './fuzz-suite';
import { lockingSuite } from './locking-suite';
import { storeContract } from './store-contract';
import { turnsContract } from './turns-contract';
import { waitingSuite } from './waiting-suite';

const CONTRACTS = { storeContract };
const CONTRACTS_OF_ORDER = { turnsContract };
const SUITES = { lockingSuite, fuzzSuite };
const SUITES_OF_ORDER = { waitingSuite };
const SUITES_OF_SERVERS = { faultsSuite };

describe.each(Object.entries(STORES))('the %s store', (_name, { start, keepsOrder, hasServers, isSlow }) => {
  let place: StorePlace;
  beforeAll(async () => {
    place = await start();
  });
  afterAll(() => place.stop());

  const suites = {
    ...CONTRACTS,
    ...(keepsOrder && CONTRACTS_OF_ORDER),
    ...(!isSlow && SUITES),
    ...(!isSlow && keepsOrder && SUITES_OF_ORDER),
    ...(hasServers && SUITES_OF_SERVERS),
  };
  describe.each(Object.entries(suites))('%s', (_suite, suite) => suite(() => place));
});
