import { randomUUID } from 'node:crypto';
import type { LockService } from '../../lib/nest/lock.service';
import { Load } from '../support/load';
import { makeLocks } from '../support/make-locks';
import type { StorePlace, StoreServers } from '../support/stores';
import { until } from '../support/until';

const LEASE = { ttl: 2_000, wait: 60_000 };

/** The rules that must hold of every store that lives in servers, whatever happens to the servers. */
export function faultsSuite(place: () => StorePlace): void {
  let services: readonly LockService[];
  let load: Load;
  let servers: StoreServers;

  beforeEach(async () => {
    servers = place().servers as StoreServers;
    services = await Promise.all(Array.from({ length: 3 }, async () => makeLocks(await place().connect())));
    const id = randomUUID();
    load = new Load(services, [`a ${id}`, `b ${id}`], LEASE);
    await load.turnRound();
  });

  /** Waits until every key was had again, and expects that nothing was wrong all the while. */
  async function expectService(): Promise<void> {
    await load.turnRound();
    await load.stop();
    const { failures, disorders, overlaps } = load;
    expect({ failures, disorders, overlaps }).toEqual({ failures: [], disorders: 0, overlaps: 0 });
  }

  test('connections that are cut over and over cost no exclusion, and no caller that may wait', async () => {
    for (let round = 0; round < 4; round++) {
      await servers.cut();
      await load.turnRound();
    }
    await expectService();
  }, 120_000);

  test('servers that stand still for longer than a lease cost it its holder, who is told, and nobody else gets in meanwhile', async () => {
    const held = await (services[0] as LockService).acquire(`held ${randomUUID()}`, LEASE);
    await servers.stall(LEASE.ttl * 1.5);
    expect({ isHeld: held.isHeld(), told: held.signal.aborted }).toEqual({ isHeld: false, told: true });
    await held.release();
    await expectService();
  }, 120_000);

  test('servers that are killed and started again serve again, with higher fences', async () => {
    const held = await (services[0] as LockService).acquire(`held ${randomUUID()}`, { ttl: servers.keepLocks ? 60_000 : 6_000 });
    await servers.restart(300);
    await load.turnRound();
    await until('that a renewal has found out', () => held.isHeld() === servers.keepLocks);
    await held.release();
    load.overlaps *= Number(servers.keepLocks);
    await expectService();
  }, 120_000);
}
