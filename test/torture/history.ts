import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryEvent } from './event.js';

/** Milliseconds of the one clock that all processes of a machine share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** How often a process shows that its event loop turns, and how much later that counts as a stall, in milliseconds. */
const [PULSE_MS, LATE_MS] = [20, 60];

/** A process's own file of events: a line is one write, so a process that is killed loses none. */
export class HistoryFile {
  readonly #process: string;
  readonly #file: number;
  #turnedAt = Infinity;
  #pulse: NodeJS.Timeout | undefined;

  constructor(folder: string, process: string) {
    this.#process = process;
    this.#file = openSync(join(folder, `${process}.jsonl`), 'a');
  }

  write(event: Omit<HistoryEvent, 'process' | 't'> & { readonly t?: number }): void {
    this.#noteStall();
    writeSync(this.#file, `${JSON.stringify({ process: this.#process, t: now(), ...event })}\n`);
  }

  /** Writes down from now on when the event loop of this process stood still. */
  watchEventLoop(): void {
    this.#turnedAt = now();
    this.#pulse = setInterval(() => {
      this.#noteStall();
      this.#turnedAt = now();
    }, PULSE_MS).unref();
  }

  close(): void {
    clearInterval(this.#pulse);
    closeSync(this.#file);
  }

  /** A process may be killed before its next pulse, so a stall comes before what it writes next. */
  #noteStall(): void {
    const since = this.#turnedAt;
    if (now() - since > PULSE_MS + LATE_MS) {
      this.#turnedAt = now();
      this.write({ op: 'stall', phase: 'info', since });
    }
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
