import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockStore } from '../../lib/core/seam/lock-store';
import type { FaultName } from './faults';
import type { Fleet } from './fleet';
import { HistoryFile, readHistories } from './history';
import { Nemesis } from './nemesis';
import type { Step } from './plan';
import { Faults } from './struck';
import type { Topology } from './topologies/topology';

let folder: string;
let history: HistoryFile;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-nemesis-'));
  history = new HistoryFile(folder, 'nemesis');
});
afterEach(() => {
  history.close();
  rmSync(folder, { recursive: true });
});

function step(at: number, fault: FaultName, target: string): Step {
  return { at, fault, target, ms: 10, chance: 0.9 };
}

/**
 * Runs a plan with workers that take `slowMs` to start and to do their tasks; answers their actions, in order, and the
 * faults.
 */
async function run(plan: readonly Step[], slowMs: number): Promise<{ did: string[]; faults: Faults }> {
  const did: string[] = [];
  const fleet = {
    kill: async (name: string) => void did.push(`kill ${name}`),
    restart: async (name: string) => {
      await sleep(slowMs);
      did.push(`restart ${name}`);
    },
    ask: async (name: string, { type }: { type: string }) => {
      await sleep(slowMs);
      did.push(`${type} ${name}`);
    },
  };
  await new Nemesis(fleet as unknown as Fleet, {} as Topology, {} as LockStore, history).run(plan);
  return { did, faults: new Faults(readHistories(folder)) };
}

test('a worker that has not started again is not killed once more, and nothing else befalls its process', async () => {
  const { did, faults } = await run(
    [step(0, 'crash', 'w1'), step(50, 'crash', 'w1'), step(60, 'wall', 'w1'), step(70, 'crash', 'w2')],
    3_000,
  );
  expect(did.toSorted()).toEqual(['kill w1', 'kill w2', 'restart w1', 'restart w2']);
  expect(faults.all.map(({ fault, target }) => `${fault} ${target}`)).toEqual(['crash w1', 'crash w2']);
  expect(faults.leftOut).toEqual(['crash', 'wall']);
});

test("a fault of a worker's clocks lasts until the worker has done what it was asked for", async () => {
  const { did, faults } = await run([step(0, 'wall', 'w1'), step(100, 'block', 'w1'), step(2_500, 'block', 'w1')], 200);
  expect(did).toEqual(['wall w1', 'wall w1', 'block w1']);
  const [wall] = faults.all;
  expect((wall?.to ?? 0) - (wall?.from ?? 0)).toBeGreaterThan(400);
  expect(faults.leftOut).toEqual(['block']);
});
