import type { QueuedPlace } from '../../lib/stores/kit/key-state.js';

const LONGEST_BURST = 16;

/** Checks that grants follow the queue, and that no process has too many in a row while another one waits in it. */
export class Order {
  #queue: { readonly name: string; readonly process: string }[] = [];
  #process = '';
  #burst = 0;

  joined(place: QueuedPlace): void {
    this.#queue.push(place);
  }

  left(name: string): void {
    this.#queue = this.#queue.filter((place) => place.name !== name);
  }

  /** A grant, of which `passed` ones may overtake the queue. */
  granted(process: string, place: QueuedPlace | undefined, passed: boolean): void {
    const [first] = this.#queue;
    if (!passed && first && first.name !== place?.name) {
      throw new Error(`out of order: ${process} was granted before ${first.name}`);
    }
    this.left(place?.name ?? '');
    const isOvertaking = this.#queue.some((waiting) => waiting.process !== process);
    this.#burst = isOvertaking ? (process === this.#process ? this.#burst : 0) + 1 : 0;
    this.#process = process;
    if (this.#burst > LONGEST_BURST) {
      throw new Error(`unfair: ${process} was granted ${this.#burst} times in a row while others were queued`);
    }
  }
}
