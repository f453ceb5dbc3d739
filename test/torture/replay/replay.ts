import type { Library } from '../../support/open-table.js';
import { baseOf } from '../fleet.js';
import type { Operation } from '../operation.js';
import type { Topology } from '../topologies/topology.js';
import { Search, type KeySearch, type Task } from './search.js';
import { Stepper, type Command, type Known } from './stepper.js';

/** How long a command of unknown outcome may be on its way after its sender gave it up, in milliseconds. */
const ON_THE_WAY_MS = 4_000;
/** How long a process may be without a subscription after a command failed, in milliseconds. */
const RECONNECT_MS = 500;

const REPLAYED: ReadonlySet<string> = new Set(['acquire', 'join', 'renew', 'release', 'exchange', 'leave', 'force', 'forget']);

export interface KeyReplay extends KeySearch {
  readonly key: string;
  /** How often the table carried an operation out. */
  readonly steps: number;
}

/** Looks, for each key, for a run of the lock table that explains all its operations. */
export function replay(library: Library, operations: readonly Operation[], table: Topology['table']): KeyReplay[] {
  if (table === 'none') {
    return [];
  }
  const byKey = new Map<string, Operation[]>();
  for (const operation of operations) {
    if (operation.key !== undefined) {
      byKey.set(operation.key, [...(byKey.get(operation.key) ?? []), operation]);
    }
  }
  const everywhere = operations.filter(({ op, key }) => op === 'forget' && key === undefined);
  const away = awayOf(operations);
  return [...byKey].map(([key, own]) => {
    const all = [...own, ...everywhere];
    const tasks = all.filter(({ op }) => REPLAYED.has(op)).flatMap((operation) => tasksOf(operation, table));
    const merged = together(tasks);
    const stepper = new Stepper(library, knownOf(all, tasks, away, table));
    return { key, ...new Search(stepper, merged).run(), steps: stepper.steps };
  });
}

/** The tasks of an operation: those that have to be, or may have been, carried out. */
function tasksOf(operation: Operation, table: Topology['table']): Task[] {
  const { op, outcome, invoke, return: end, reply, granted } = operation;
  // A store with replicas renews what it was granted, and waits until they have that.
  const isConfirmed = table === 'replicated' && (op === 'acquire' || op === 'exchange' || op === 'join');
  const optional = (command: Command): Task => {
    const to = Math.max(end ?? invoke, invoke) + ON_THE_WAY_MS;
    const own = { ...command, invoke, return: to, isSilent: true, ...(isConfirmed && { confirms: to }) };
    return { command: own, from: invoke, to, isOptional: true };
  };
  const certain = (): Task => ({
    command: isConfirmed ? { ...operation, confirms: end as number } : operation,
    from: invoke,
    to: end as number,
    isOptional: false,
  });
  /** Replicas did not confirm the grant, so it may be withdrawn. */
  const withdrawn = (of: Partial<Operation>): Task[] => (table === 'replicated' ? [optional({ ...operation, ...of, op: 'withdraw' })] : []);
  if (op === 'exchange') {
    const next = { ...operation.next, fence: 0, next: undefined };
    if (outcome !== 'ok') {
      return outcome === 'failed' && table === 'one'
        ? []
        : [optional(operation), ...withdrawn(next), optional({ ...operation, ...next, op: 'acquire' })];
    }
    const whole = certain();
    if (reply === 'failed' && table === 'one') {
      return [{ ...whole, command: { ...operation, isLate: true } }];
    }
    return reply === 'ok' ? [whole] : [whole, optional({ ...operation, ...next, op: 'acquire', granted: undefined }), ...withdrawn(next)];
  }
  if (outcome === 'ok' && end !== undefined) {
    return [certain()];
  }
  if (outcome === 'failed' && (table === 'one' || (op !== 'acquire' && op !== 'join'))) {
    return op === 'acquire' ? [optional({ ...operation, isLate: true })] : [];
  }
  return [optional({ ...operation, granted }), ...(op === 'acquire' || op === 'join' ? withdrawn({}) : [])];
}

/** Makes one task of optional commands that were sent several times: such a task may be carried out more than once. */
function together(tasks: readonly Task[]): Task[] {
  const byName = new Map<string, Task>();
  for (const task of tasks.filter(({ isOptional }) => isOptional)) {
    const { op, store, hold, place, next, fence, isLate } = task.command;
    const name = JSON.stringify([op, store, hold, place, next?.hold, fence, isLate]);
    const other = byName.get(name);
    const from = Math.min(task.from, other?.from ?? Infinity);
    const to = Math.max(task.to, other?.to ?? 0);
    byName.set(name, { ...task, from, to, command: { ...task.command, invoke: from, return: to } });
  }
  return [...tasks.filter(({ isOptional }) => !isOptional), ...byName.values()];
}

interface Away {
  readonly from: number;
  readonly to: number;
}

/**
 * The times away by store, by process, and by worker. Where a command failed, the connection that receives messages may
 * be gone, for longer than the fault.
 */
function awayOf(operations: readonly Operation[]): Map<string, Away[]> {
  const away = new Map<string, Away[]>();
  const add = (name: string, from: number, to: number): void => void away.set(name, [...(away.get(name) ?? []), { from, to }]);
  for (const { op, process, store = process, invoke, return: end = Infinity, outcome } of operations) {
    if (op === 'away') {
      add(process, invoke, end);
    } else if (op === 'close') {
      add(store, invoke, Infinity);
    } else if (op !== 'forget' && outcome !== 'ok') {
      add(store, invoke, end + RECONNECT_MS);
    }
  }
  return away;
}

function knownOf(
  operations: readonly Operation[],
  tasks: readonly Task[],
  away: ReadonlyMap<string, readonly Away[]>,
  table: Topology['table'],
): Known {
  const fences = new Map<string, Set<number>>();
  const tell = (owner: string, fence: number): void => void fences.set(owner, (fences.get(owner) ?? new Set()).add(fence));
  const first = new Map<string, number>();
  const last = new Map<string, number>();
  const renamed = new Set<string>();
  const aheads: number[] = [];
  const name = (named: string, from: number, to: number): void => {
    first.set(named, Math.min(first.get(named) ?? Infinity, from));
    last.set(named, Math.max(last.get(named) ?? 0, to));
  };
  for (const { command, from, to } of tasks) {
    for (const named of [command.hold, command.next?.hold, command.place && `${command.store} ${command.place}`]) {
      if (named !== undefined) {
        name(named, from, to);
      }
    }
  }
  for (const { op, owner, fence, granted, next, hold, outcome, reply, invoke, return: end } of operations) {
    const asks = op === 'exchange' ? next?.owner : owner;
    if (granted !== undefined && asks !== undefined) {
      tell(asks, granted);
      aheads.push(granted / 1_000 - (invoke + (end as number)) / 2);
    }
    if (owner !== undefined && fence !== undefined && fence > 0) {
      tell(owner, fence);
    }
    if (table === 'replicated' && (outcome !== 'ok' || (op === 'exchange' && reply !== 'ok'))) {
      [hold, next?.hold].forEach((named) => named !== undefined && renamed.add(named));
    }
  }
  aheads.sort((one, other) => one - other);
  return {
    isAway: (store, from, to) => {
      const process = store.split('#')[0] as string;
      return [store, process, baseOf(process)].some((one) => away.get(one)?.some((time) => time.from <= to && time.to >= from));
    },
    fencesOf: (owner) => [...(fences.get(owner) ?? [])],
    firstNamed: (named) => first.get(named) ?? Infinity,
    lastNamed: (named) => last.get(named) ?? 0,
    isRenamed: (hold) => renamed.has(hold),
    ahead: aheads[Math.floor(aheads.length / 2)],
  };
}
