import { readPage, tableBelow } from '../readme/pages';

const PAGE = readPage('docs/operations/faults.md');

/** What is seen of a fault, as the cells of a row are written. */
export interface Row {
  /** The status, and the first reason. */
  readonly health: string;
  readonly metrics: string;
  readonly alerts: string;
  readonly doctor: string;
}

/** The rows that stand under a heading, by their fault. */
export function rowsOf(heading: string): ReadonlyMap<string, Row> {
  return new Map(
    tableBelow(PAGE, heading).map(([fault = '', health = '', metrics = '', alerts = '', doctor = '']) => [
      fault,
      { health, metrics, alerts, doctor },
    ]),
  );
}

/** What the page says for each reason, where it does not end with what differs from time to time. */
export function pageWords(): ReadonlyMap<string, string> {
  return new Map(tableBelow(PAGE, 'On the page').map(([reason = '', words = '']) => [reason, words]));
}

/** A list as a cell has it. */
export function listed(texts: readonly string[]): string {
  return texts.length === 0 ? '–' : texts.join(', ');
}
