import { readPage, tableBelow } from '../readme/pages';

const PAGE = readPage('docs/operations/faults.md');

/** The visible effects of a fault, as the cells of a row are written. */
export interface Row {
  /** The HTTP status of calls, or `ok`. */
  readonly calls: string;
  /** The status, and the first reason. */
  readonly health: string;
  /** Words of the line in the log that tells of it. */
  readonly log: string;
  readonly alerts: string;
  readonly doctor: string;
}

/** The rows that stand under a heading, by their fault. */
export function rowsOf(heading: string): ReadonlyMap<string, Row> {
  return new Map(
    tableBelow(PAGE, heading).map(([fault = '', calls = '', health = '', log = '', alerts = '', doctor = '']) => [
      fault,
      { calls, health, log, alerts, doctor },
    ]),
  );
}

/** The words of the page for each reason, where they do not end with a part that differs from time to time. */
export function pageWords(): ReadonlyMap<string, string> {
  return new Map(tableBelow(PAGE, 'On the page').map(([reason = '', words = '']) => [reason, words]));
}

/** A list as a cell has it. */
export function listed(texts: readonly string[]): string {
  return texts.length === 0 ? '–' : texts.join(', ');
}
