import { rmSync } from 'node:fs';
import type { Finding } from './checks/check.js';
import { takeChildrenAlong } from './children.js';
import type { FaultName } from './faults.js';
import type { Mutant } from './mutants.js';
import { readOptions, USAGE } from './options.js';
import { findingsOf, report } from './report.js';
import { planOf, run } from './run.js';
import { TOPOLOGIES, type TopologyName } from './topologies/all.js';
import { weaknessesOf } from './weakness.js';

takeChildrenAlong();
const options = readOptions(process.argv.slice(2));
if (options === USAGE) {
  console.log(options);
} else if (typeof options === 'string') {
  console.error(options);
  process.exitCode = 2;
} else if (options.mutants.length > 0) {
  for (const [name, mutant] of options.mutants) {
    await runMutant(name, mutant, options.seconds, options.seed);
  }
} else {
  for (const topology of options.topologies) {
    const { findings, weaknesses, folder } = await runOn(topology, options.seconds, options.seed, options.faults);
    keep(folder, options.keep || findings.some(({ violations }) => violations.length > 0));
    process.exitCode ||= isClean(findings) && weaknesses.length === 0 ? 0 : 1;
  }
}

/** A defect that is not caught says that the checks would not notice one either that nobody put there. */
async function runMutant(name: string, mutant: Mutant, seconds: number, seed: number): Promise<void> {
  console.log(`${name}: ${mutant.defect}`);
  const { findings, folder } = await runOn(mutant.topology, seconds, seed, mutant.nemesis, mutant);
  const failed = findings.filter(({ violations }) => violations.length > 0).map(({ check }) => check);
  const caught = failed.some((check) => mutant.caughtBy.includes(check));
  console.log(`${caught ? 'CAUGHT' : 'MISSED'}  ${name}: ${failed.join(', ') || `in ${seconds} s; raise --seconds`}`);
  keep(folder, !caught);
  process.exitCode ||= caught ? 0 : 1;
}

async function runOn(
  name: TopologyName,
  seconds: number,
  seed: number,
  faults: readonly FaultName[] | undefined,
  mutant?: Mutant,
): Promise<{ findings: Finding[]; weaknesses: string[]; folder: string }> {
  const topology = await TOPOLOGIES[name]();
  const own = { topology, seconds, seed, faults: faults ?? topology.faults, edits: mutant?.edits ?? [] };
  console.log(`${name}: ${planOf(own).length} faults in ${seconds} s, --seed ${seed}`);
  const { evidence, plan, folder } = await run(own);
  const findings = findingsOf(evidence);
  const weaknesses = weaknessesOf(evidence, plan, seconds, faults);
  if (!mutant) {
    console.log(report(evidence, findings, weaknesses));
  }
  return { findings, weaknesses, folder };
}

function keep(folder: string, isNeeded: boolean): void {
  if (isNeeded) {
    console.log(`  The histories are in ${folder}\n`);
  } else {
    rmSync(folder, { recursive: true });
  }
}

function isClean(findings: readonly Finding[]): boolean {
  return findings.every(({ violations }) => violations.length === 0);
}
