import 'reflect-metadata';
import { describeLockPlace, keepsOrder, offersPermits, type LockPlace } from '../lock-place.js';
import { Settings } from '../settings.js';
import { StartUpError } from '../start-up.error.js';
import { contend } from './contention.js';
import { describeBalancePlace } from './open-balance.js';
import { startServers } from './own-servers.js';
import { startPage } from './page-server.js';
import { describeLimited, describeLocked, describePlan, describeUnlocked, NO_SEMAPHORE } from './report.js';
import { runRound } from './round.js';
import { PERMITS } from './task.js';
import { gatherTeam, type Team } from './team.js';
import { courseOf, judge } from './verdict.js';

const TASKS = 10;
const WORK_MS = 200;
const STAGGER_MS = 15;
const PAGE_PORT = 3001;
/** With the page, a task takes longer: it is to be seen. */
const PAGE_WORK_MS = 1_200;
const WITHOUT_SERVER = 'There is no redis-server on the PATH and no REDIS_URL';
const WITH_MEMORY = 'LOCK_STORE is "memory"';

/** Shows all rounds; resolves to whether lock and semaphore kept their promises. */
async function show(team: Team, locks: LockPlace): Promise<boolean> {
  console.log(describePlan(team, { tasks: TASKS, workMs: WORK_MS, balance: describeBalancePlace(locks), locks: describeLockPlace(locks) }));
  console.log(describeUnlocked(await runRound(team, { tasks: TASKS, kind: 'unlocked', staggerMs: STAGGER_MS })));
  const round = await runRound(team, { tasks: TASKS, kind: 'locked', staggerMs: STAGGER_MS });
  console.log(describeLocked(round, keepsOrder(locks)));
  const { lost, mostAtOnce } = judge(round);
  return (await showLimited(team, locks)) && lost === 0 && mostAtOnce === 1;
}

/** Shows the round with permits, where there are any; resolves to whether there were never more. */
async function showLimited(team: Team, locks: LockPlace): Promise<boolean> {
  if (!offersPermits(locks)) {
    console.log(NO_SEMAPHORE);
    return true;
  }
  const { records } = await runRound(team, { tasks: TASKS, kind: 'limited', staggerMs: STAGGER_MS });
  console.log(describeLimited(records));
  return courseOf(records).mostAtOnce <= PERMITS;
}

/** Keeps several processes at one lock until somebody stops the demo. */
async function showPage(team: Team, locks: LockPlace): Promise<never> {
  console.log(`The locks of the demo: ${await startPage(locks, Number(process.env['PORT'] || PAGE_PORT))} (Ctrl+C ends it)`);
  await contend(team);
  throw new Error('The contention has ended.');
}

async function demo(): Promise<boolean> {
  const servers = await startServers(process.env);
  const { locks } = new Settings({ ...process.env, ...servers.environment });
  if (locks.store === 'memory') {
    console.log(`${process.env['LOCK_STORE'] ? WITH_MEMORY : WITHOUT_SERVER}: the demo runs in one process, with locks in its memory.`);
  }
  const withPage = process.argv.includes('--page');
  const team = await gatherTeam(locks, withPage ? PAGE_WORK_MS : WORK_MS);
  try {
    return await (withPage ? showPage(team, locks) : show(team, locks));
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
