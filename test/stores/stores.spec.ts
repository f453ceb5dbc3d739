import 'reflect-metadata';
import { STORES, type StorePlace } from '../support/stores';
import { lockingSuite } from './locking-suite';
import { storeContract } from './store-contract';
import { turnsContract } from './turns-contract';
import { waitingSuite } from './waiting-suite';

const SUITES = { storeContract, lockingSuite };
const SUITES_OF_ORDER = { turnsContract, waitingSuite };

describe.each(Object.entries(STORES))('the %s store', (_name, { start, keepsOrder }) => {
  let place: StorePlace;
  beforeAll(async () => {
    place = await start();
  });
  afterAll(() => place.stop());

  describe.each(Object.entries({ ...SUITES, ...(keepsOrder && SUITES_OF_ORDER) }))('%s', (_suite, suite) => suite(() => place));
});
