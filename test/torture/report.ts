import type { HistoryEvent } from './event.js';
import { checkCalls } from './checks/calls.js';
import { checkConnections } from './checks/connections.js';
import { checkFences } from './checks/fences.js';
import { checkHonesty } from './checks/honesty.js';
import { checkLeaders } from './checks/leaders.js';
import { checkLiveness } from './checks/liveness.js';
import { checkOrder } from './checks/order.js';
import { checkOverlap } from './checks/overlap.js';
import { checkPermits } from './checks/permits.js';
import { checkProcesses } from './checks/processes.js';
import { checkRegisters, controlOf } from './checks/registers.js';
import { checkTickets } from './checks/tickets.js';
import type { Evidence, Finding, Violation } from './checks/check.js';
import { wasLost } from './entry.js';
import type { Struck } from './struck.js';

const CHECKS = [
  checkOverlap,
  checkPermits,
  checkFences,
  checkRegisters,
  checkHonesty,
  checkLiveness,
  checkOrder,
  checkTickets,
  checkCalls,
  checkProcesses,
  checkConnections,
  checkLeaders,
];
/** How many events of a violation are shown. */
const SHOWN = 40;

export function findingsOf(evidence: Evidence): Finding[] {
  return CHECKS.map((check) => check(evidence));
}

/** The report on a run, for people to read. */
export function report(evidence: Evidence, findings: readonly Finding[], weaknesses: readonly string[]): string {
  const violations = findings.flatMap((finding) => finding.violations);
  const control = controlOf(evidence);
  return [
    `  acquires  ${acquires(evidence)}`,
    `  faults    ${faults(evidence)}`,
    `  control   ${control.lost} of ${control.of} updates without a fence were lost`,
    ...findings.map((finding) => `  ${finding.violations.length === 0 ? 'ok  ' : 'FAIL'}  ${finding.check}: ${finding.seen}`),
    ...weaknesses.map((why) => `  WEAK  ${why}: the run does not count. Repeat it, or raise --seconds.`),
    `  ${violations.length} violations`,
    ...excerpt(violations, evidence),
  ].join('\n');
}

function acquires({ entries }: Evidence): string {
  const asked = entries.filter(({ op }) => op === 'acquire');
  const granted = asked.filter(({ enteredAt }) => enteredAt !== undefined);
  const entered = entries.filter(({ op, enteredAt }) => op === 'enter' && enteredAt !== undefined);
  const outcomes = countsOf(asked.filter(({ enteredAt }) => enteredAt === undefined).map(({ outcome = 'killed' }) => outcome));
  return `${granted.length} granted, of which ${granted.filter(wasLost).length} lost; ${entered.length} entered; ${outcomes}`;
}

function faults({ faults: { all, leftOut } }: Evidence): string {
  const names = all.map(({ fault, outcome }) => (outcome === 'struck' ? fault : `${fault} (${outcome})`));
  return `${all.length}: ${countsOf([...names, ...leftOut.map((fault) => `${fault} (left out)`)])}`;
}

function countsOf(names: readonly string[]): string {
  const found = new Map<string, number>();
  for (const name of names) {
    found.set(name, (found.get(name) ?? 0) + 1);
  }
  return [...found]
    .toSorted(([, first], [, second]) => second - first)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ');
}

/** The violation that the fewest events show, with the faults of that time. */
function excerpt(violations: readonly Violation[], { history, faults: { all } }: Evidence): string[] {
  const texts = violations.slice(0, 10).map(({ text }) => `  ! ${text}`);
  const [shortest] = violations
    .filter(({ entries }) => entries.length > 0)
    .toSorted((first, second) => eventsOf(first).length - eventsOf(second).length);
  if (!shortest) {
    return texts;
  }
  const own = eventsOf(shortest);
  const from = Math.min(...own.map(({ t }) => t));
  const to = Math.max(...own.map(({ t }) => t));
  const processes = new Set(shortest.entries.flatMap(({ process, key }) => [process.split('.')[0], key, 'servers']));
  const near = all.filter((struck) => processes.has(struck.target) && struck.to > from - 500 && struck.from < to);
  const struck = history.filter(({ fault, target, t }) => near.some((other) => isPartOf(other, fault, target, t)));
  const shown = [...own, ...struck].toSorted((first, second) => first.t - second.t);
  return ['', ...texts, '', `  ${shortest.text}:`, ...shown.slice(0, SHOWN).map((event) => `    ${line(event, from)}`)];
}

function isPartOf(struck: Struck, fault: string | undefined, target: string | undefined, t: number): boolean {
  return struck.fault === fault && struck.target === target && t >= struck.from && t <= struck.to;
}

function eventsOf({ entries }: Violation): HistoryEvent[] {
  return entries.flatMap((entry) => entry.events);
}

function line({ t, process, op, phase, fault, target, fence, shares, deadline, outcome, why, hold }: HistoryEvent, from: number): string {
  const what = fault === undefined ? `${op} ${phase} ${hold?.slice(0, 4) ?? ''}` : `${op} of ${fault} on ${target}`;
  const details = [
    fence === undefined ? '' : `fence ${fence}`,
    shares === undefined ? '' : shares === 'read' ? 'reads' : `one of ${shares} permits`,
    deadline === undefined ? '' : `trusted until ${(deadline - from).toFixed(1)}`,
    outcome ?? '',
    why ?? '',
  ];
  return [`${(t - from).toFixed(1).padStart(9)} ms`, process.padEnd(8), what, ...details].filter(Boolean).join('  ');
}
