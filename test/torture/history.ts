import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryEvent } from './event.js';

/** Milliseconds of the one clock that all processes of a machine share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A process's own file of events: a line is one write, so a process that is killed loses none. */
export class HistoryFile {
  readonly #process: string;
  readonly #file: number;

  constructor(folder: string, process: string) {
    this.#process = process;
    this.#file = openSync(join(folder, `${process}.jsonl`), 'a');
  }

  write(event: Omit<HistoryEvent, 'process' | 't'> & { readonly t?: number }): void {
    writeSync(this.#file, `${JSON.stringify({ process: this.#process, t: now(), ...event })}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** All histories of a folder as one, in the order of time. */
export function readHistories(folder: string): HistoryEvent[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.jsonl'))
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').trimEnd().split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as HistoryEvent)
    .toSorted((first, second) => first.t - second.t);
}
