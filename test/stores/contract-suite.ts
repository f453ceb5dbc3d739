import 'reflect-metadata';
import { storeContract } from '../../lib/contract/index';
import { GROUPS, STORES, type StoreKind, type StorePlace } from '../support/stores';

/** When a rule hangs, in milliseconds: the machine may be busy. */
const LIMIT_MS = 120_000;

/**
 * The contract that is published for every store. It restarts servers, so it has some of its own: each store has a spec
 * file that calls this.
 */
export function contractSuite(name: string): void {
  const { start, offers, hasServers } = (STORES[name] ?? GROUPS[name]) as StoreKind;

  describe(`the contract of the ${name} store`, () => {
    let place: StorePlace;
    beforeAll(async () => {
      place = await start();
    });
    afterAll(() => place.stop());

    const servers = {
      stall: async (ms: number) => place.servers?.stall(ms),
      restart: async () => place.servers?.restart(0),
    };
    const withLimit = (rule: string, body: () => Promise<void>): void => test(rule, body, LIMIT_MS);
    storeContract(
      { describe, test: Object.assign(withLimit, { skip: test.skip }) },
      { connect: () => place.make(), offers, warn: (message) => place.warn(message), ...(hasServers && servers) },
    );
  });
}
