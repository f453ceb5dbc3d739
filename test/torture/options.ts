import { parseArgs } from 'node:util';
import { FAULTS, type FaultName } from './faults.js';
import { MUTANTS, type Mutant } from './mutants.js';
import { SERVERS } from '../../scripts/fetched-servers.mjs';
import { TOPOLOGIES, type TopologyName } from './topologies/all.js';

/** A day. */
const LONGEST_S = 86_400;

/** The options of a command line. */
export interface Options {
  readonly seconds: number;
  readonly seed: number;
  readonly topologies: readonly TopologyName[];
  /** Undefined for all that a topology knows. */
  readonly faults: readonly FaultName[] | undefined;
  /** Whether the histories stay also where nothing was found. */
  readonly keep: boolean;
  readonly mutants: readonly (readonly [name: string, mutant: Mutant])[];
}

export const USAGE = `npm run torture -- [options]

  --seconds N             how long each run lasts (60; with mutants 20)
  --topology A,B          ${Object.keys(TOPOLOGIES).join(', ')} (all)
                          with four processes and 18 keys; mysql with 8 keys, in two databases
  --server NAME           a server that is fetched for it, instead of the one of the machine:
                          ${Object.keys(SERVERS).join(', ')}
  --seed N                repeats a plan of faults
  --nemesis A,B           the faults to cause, or none (all):
                          ${Object.keys(FAULTS).join(', ')}
  --mutant NAME           runs with a deliberate defect, which has to be caught:
                          ${Object.keys(MUTANTS).join(', ')}
  --mutants               runs with each of them
  --keep                  leaves the histories of a run where they are

TEST_REDIS_CLIENT=NAME has all processes on Redis use one client: ioredis, iovalkey, node-redis or node-redis-6; the last two not with
sentinel. Without it, each process has another one.
`;

/** Reads the command line. Answers what is wrong with it as a text, or `USAGE` where that is asked for. */
export function readOptions(args: readonly string[]): Options | string {
  let values;
  try {
    values = parseArgs({
      args: [...args],
      options: {
        seconds: { type: 'string' },
        topology: { type: 'string' },
        server: { type: 'string' },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
        nemesis: { type: 'string' },
        mutant: { type: 'string' },
        mutants: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    return `${(error as Error).message}\n\n${USAGE}`;
  }
  const { topology, server, nemesis, mutant, mutants } = values;
  const seed = Number(values.seed);
  const seconds = Number(values.seconds ?? (mutant !== undefined || mutants ? 20 : 60));
  if (values.help || !Number.isInteger(seed) || !(seconds >= 5 && seconds <= LONGEST_S)) {
    return values.help ? USAGE : `--seed takes a whole number, and --seconds 5 to ${LONGEST_S}.\n\n${USAGE}`;
  }
  const faults = nemesis === 'none' ? [] : nemesis?.split(',');
  const unknown = [
    ...unknownIn('topology', topology?.split(','), TOPOLOGIES),
    ...unknownIn('server', server === undefined ? [] : [server], SERVERS),
    ...unknownIn('fault', faults, FAULTS),
    ...unknownIn('mutant', mutant?.split(','), MUTANTS),
  ];
  if ((mutant !== undefined || mutants) && (topology !== undefined || nemesis !== undefined)) {
    unknown.push('A mutant brings its own topology and faults. Leave out --topology and --nemesis.');
  }
  if (unknown.length > 0) {
    return `${unknown.join('\n')}\n\n${USAGE}`;
  }
  return {
    seconds,
    seed,
    topologies: (topology?.split(',') ?? Object.keys(TOPOLOGIES)) as TopologyName[],
    keep: values.keep,
    faults: faults as FaultName[] | undefined,
    mutants: Object.entries(MUTANTS).filter(([name]) => mutants || mutant?.split(',').includes(name)),
  };
}

function unknownIn(what: string, names: readonly string[] | undefined, known: object): string[] {
  return (names ?? []).filter((name) => !Object.hasOwn(known, name)).map((name) => `There is no ${what} '${name}'.`);
}
