import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

const CPUS = cpus().length;
const ALL = `0-${CPUS - 1}`;

/**
 * Where a caller and its server run while one call at a time is measured: each on a CPU of its own, or both on one. The
 * scheduler decides it anew for each pair of processes, and a wake-up of another CPU costs more than all the rest of a
 * round trip: left to the scheduler, the row compares its decisions. Without Linux or a second CPU nothing is placed.
 */
export const PLACES = { apart: ['0', '1'], together: ['0', '0'], anywhere: [ALL, ALL] };

export function place([ofCaller, ofServer], caller, server) {
  if (process.platform === 'linux' && CPUS > 1) {
    moveTo(ofCaller, caller);
    moveTo(ofServer, server);
  }
}

function moveTo(list, pid) {
  const { status, error, stderr } = spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', list, String(pid)], { encoding: 'utf8' });
  if (status !== 0) {
    throw new Error(`taskset could not move process ${pid} to CPU ${list}: ${error?.message ?? stderr.trim()}. It is in util-linux.`);
  }
}
