import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { baseOf } from './fleet.js';
import type { Operation } from './operation.js';
import type { Faults, Struck } from './struck.js';
import type { Topology } from './topologies/topology.js';

/** The file of a run that has all of it, for whoever wants to check it: a line for each operation. */
export const OPERATIONS_FILE = 'operations.ndjson';

/** How long a failover goes on after the fault that caused it, in milliseconds. */
const FAILOVER_MS = 5_000;

/** Half of an operation, as its process wrote it down. */
type Half = Partial<Operation> & { readonly id: number };

/** The operations that the processes of a run wrote down, and the faults that struck them, in the order of time. */
export function operationsOf(folder: string, faults: Faults, table: Topology['table']): Operation[] {
  const operations: Operation[] = [];
  const processes: string[] = [];
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.operations'))) {
    processes.push(file.slice(0, -'.operations'.length));
    const open = new Map<number, Half>();
    for (const half of linesOf<Half>(join(folder, file))) {
      const begun = open.get(half.id);
      if (begun) {
        open.delete(half.id);
        operations.push(whole({ ...begun, ...half }));
      } else {
        open.set(half.id, half);
      }
    }
    operations.push(...[...open.values()].map((half) => whole({ ...half, outcome: 'unknown' })));
  }
  const causes = [...faults.all.flatMap((struck) => forgottenBy(struck, table)), ...processes.flatMap((name) => awayOf(name, faults))];
  return [...operations, ...causes].toSorted((first, second) => first.invoke - second.invoke);
}

/** The first line says of which kind the table is, and the others are operations. */
export function writeOperations(folder: string, table: Topology['table'], operations: readonly Operation[]): void {
  const lines = [{ version: 1, table }, ...operations].map((line) => `${JSON.stringify(line)}\n`);
  writeFileSync(join(folder, OPERATIONS_FILE), lines.join(''));
}

/** Undefined where there is none, as in a history of before. */
export function readOperations(folder: string): { table: Topology['table']; operations: Operation[] } | undefined {
  const file = join(folder, OPERATIONS_FILE);
  if (!existsSync(file)) {
    return undefined;
  }
  const [head, ...operations] = linesOf<Operation & { readonly table: Topology['table'] }>(file);
  return head && { table: head.table, operations };
}

function linesOf<Line>(file: string): Line[] {
  // The last line of a process that was killed may be half of one.
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);
}

function whole({ id: _, ...operation }: Half): Operation {
  return operation as Operation;
}

/**
 * The data that a fault took from the servers: a thing that is known, at a moment of its time; or nobody knows which
 * data.
 */
function forgottenBy({ fault, target, from, to, outcome }: Struck, table: Topology['table']): Operation[] {
  const subject = { op: 'forget', process: 'nemesis', invoke: from, return: to, outcome: outcome === 'failed' ? 'unknown' : 'ok' } as const;
  switch (fault) {
    case 'delete':
      // Also where nobody had the lock, it may have been reserved.
      return [{ ...subject, key: target, what: 'lock' }];
    case 'erase':
      return [{ ...subject, key: target, what: 'row' }];
    case 'flush':
    case 'restart':
      return [{ ...subject, what: 'everything' }];
    case 'failover':
    case 'depose':
    case 'isolate':
      return table === 'replicated' ? [{ ...subject, return: to + FAILOVER_MS, outcome: 'ok', what: 'anything' }] : [];
    default:
      return [];
  }
}

/** When a process may not have received messages: a place of one that is gone is skipped. */
function awayOf(process: string, faults: Faults): Operation[] {
  const away = { op: 'away', process, outcome: 'ok' } as const;
  const times = [...faults.hindering({ process, keys: [] }), ...faults.silencing(baseOf(process))];
  const death = faults.deathOf(process);
  return [
    ...times.map(({ from, to }) => ({ ...away, invoke: from, return: to })),
    ...(death === Infinity ? [] : [{ ...away, invoke: death }]),
  ];
}
