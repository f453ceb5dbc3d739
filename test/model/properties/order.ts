import type { QueuedPlace } from '../../../lib/kit/key-state.js';

const LONGEST_BURST = 16;

/**
 * The queue of one key: grants follow it, no place is lost, and no process is granted the key too often in a row while
 * another process queues. It is shown everything, and checked while nothing has gone wrong.
 */
export class Order {
  readonly #isChecked: () => boolean;
  readonly #known = new Set<string>();
  #queue: QueuedPlace[] = [];
  #process = '';
  #burst = 0;

  constructor(isChecked: () => boolean) {
    this.#isChecked = isChecked;
  }

  joined(place: QueuedPlace): void {
    if (this.#known.has(place.name)) {
      this.#expect(false, `the place ${place.name} in the queue was lost`);
    }
    this.#known.add(place.name);
    this.#queue.push(place);
  }

  left(name: string): void {
    this.#queue = this.#queue.filter((place) => place.name !== name);
  }

  /** A grant; `isExchange`: to the next caller of the process that released, which may overtake the queue. */
  granted(process: string, place: QueuedPlace | undefined, isExchange: boolean): void {
    const [first] = this.#queue;
    this.#expect(isExchange || !first || first.name === place?.name, `out of order: ${process} was granted before ${first?.name}`);
    this.left(place?.name ?? '');
    // One that has come to its place has overtaken nobody, though its process may have had the lock just before.
    this.#burst = isExchange ? this.#burst : 0;
    this.#count(process);
  }

  /** The lease of a process serves its next call: no command is sent. */
  served(process: string): void {
    this.#count(process);
  }

  #count(process: string): void {
    const isOvertaking = this.#queue.some((queued) => queued.process !== process);
    this.#burst = isOvertaking ? (process === this.#process ? this.#burst : 0) + 1 : 0;
    this.#process = process;
    this.#expect(this.#burst <= LONGEST_BURST, `unfair: ${process} had the lock ${this.#burst} times in a row while others queued`);
  }

  #expect(isRight: boolean, what: string): void {
    if (!isRight && this.#isChecked()) {
      throw new Error(what);
    }
  }
}
