import 'reflect-metadata';
import { Settings } from '../settings.js';
import { StartUpError } from '../start-up.error.js';
import { startRedisServer } from './redis-server.js';
import { describeLocked, describePlan, describeUnlocked } from './report.js';
import { runRound } from './round.js';
import { teamOfOne, teamOfTwo, type Team } from './team.js';
import { judge } from './verdict.js';

const TASKS = 10;
const WORK_MS = 200;
const STAGGER_MS = 15;

/** Shows both rounds; resolves to whether the lock kept its promise. */
async function show(team: Team, where: string): Promise<boolean> {
  console.log(describePlan(team, TASKS, WORK_MS, where));
  console.log(describeUnlocked(await runRound(team, { tasks: TASKS, locked: false, staggerMs: STAGGER_MS })));
  const round = await runRound(team, { tasks: TASKS, locked: true, staggerMs: STAGGER_MS });
  console.log(describeLocked(round));
  const { lost, mostAtOnce } = judge(round);
  return lost === 0 && mostAtOnce === 1;
}

async function demo(): Promise<boolean> {
  const { redisUrl } = new Settings(process.env);
  const server = redisUrl === undefined ? await startRedisServer() : undefined;
  const url = redisUrl ?? server?.url;
  if (url === undefined) {
    console.log('There is no redis-server on the PATH and no REDIS_URL: the demo runs in one process, with locks in its memory.');
  }
  const team = url === undefined ? await teamOfOne(WORK_MS) : await teamOfTwo(url, WORK_MS);
  try {
    return await show(team, url === undefined ? 'its memory' : `Redis at ${new URL(url).host}`);
  } finally {
    await team.leave();
    await server?.stop();
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
