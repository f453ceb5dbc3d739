import 'reflect-metadata';
import { describeLockPlace, keepsOrder, type LockPlace } from '../lock-place.js';
import { Settings } from '../settings.js';
import { StartUpError } from '../start-up.error.js';
import { describeBalancePlace } from './open-balance.js';
import { startServers } from './own-servers.js';
import { describeLocked, describePlan, describeUnlocked } from './report.js';
import { runRound } from './round.js';
import { gatherTeam, type Team } from './team.js';
import { judge } from './verdict.js';

const TASKS = 10;
const WORK_MS = 200;
const STAGGER_MS = 15;
const WITHOUT_SERVER = 'There is no redis-server on the PATH and no REDIS_URL';
const WITH_MEMORY = 'LOCK_STORE is "memory"';

/** Shows both rounds; resolves to whether the lock kept its promise. */
async function show(team: Team, locks: LockPlace): Promise<boolean> {
  console.log(describePlan(team, { tasks: TASKS, workMs: WORK_MS, balance: describeBalancePlace(locks), locks: describeLockPlace(locks) }));
  console.log(describeUnlocked(await runRound(team, { tasks: TASKS, locked: false, staggerMs: STAGGER_MS })));
  const round = await runRound(team, { tasks: TASKS, locked: true, staggerMs: STAGGER_MS });
  console.log(describeLocked(round, keepsOrder(locks)));
  const { lost, mostAtOnce } = judge(round);
  return lost === 0 && mostAtOnce === 1;
}

async function demo(): Promise<boolean> {
  const servers = await startServers(process.env);
  const { locks } = new Settings({ ...process.env, ...servers.environment });
  if (locks.store === 'memory') {
    console.log(`${process.env['LOCK_STORE'] ? WITH_MEMORY : WITHOUT_SERVER}: the demo runs in one process, with locks in its memory.`);
  }
  const team = await gatherTeam(locks, WORK_MS);
  try {
    return await show(team, locks);
  } finally {
    await team.leave();
    await servers.stop();
  }
}

// A signal alone would leave the server behind; `process.exit` stops it, and the workers end when their parent does.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

try {
  process.exitCode = (await demo()) ? 0 : 1;
} catch (error) {
  console.error(error instanceof StartUpError ? error.message : error);
  process.exit(1);
}
