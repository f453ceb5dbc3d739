import type { Process } from './process.js';
import type { Simulation } from './simulation.js';

/** How likely each thing is to happen to one command or message. */
export const CALM = {
  /** Delayed by 10 to 500 ms, and all behind it on the same connection too. */
  slow: 0,
  commandLost: 0,
  replyLost: 0,
  /** The connection broke: the command is executed after newer ones. */
  late: 0,
  /** The connection broke and the client sent it again: it is executed now and once more, late. */
  doubled: 0,
  messageLost: 0,
  messageDoubled: 0,
};

/** What lies between the processes and the server. */
export class Network {
  weather = CALM;
  /** The most that one way takes, unless it is slow. */
  readonly latencyMs: number;

  constructor(readonly simulation: Simulation) {
    this.latencyMs = simulation.random.pick([1, 5, 25]);
  }

  /** What is sent on one connection arrives in order. */
  command<R>({ connection }: Process, execute: () => R, replied: (reply: R) => void): void {
    const { timeline, random } = this.simulation;
    const { commandLost, late, doubled } = this.weather;
    if (connection.down || this.#strikes(commandLost)) {
      return;
    }
    const isLate = this.#strikes(late);
    if (isLate || this.#strikes(doubled)) {
      timeline.after(random.between(5, 3_000), execute);
    }
    if (isLate) {
      return;
    }
    connection.sentUntil = Math.max(connection.sentUntil, timeline.now + this.delay());
    timeline.after(connection.sentUntil - timeline.now, () => {
      const reply = execute();
      if (!connection.down && !this.#strikes(this.weather.replyLost)) {
        connection.repliedUntil = Math.max(connection.repliedUntil, timeline.now + this.delay());
        timeline.after(connection.repliedUntil - timeline.now, () => replied(reply));
      }
    });
  }

  message(deliver: () => void): void {
    if (!this.#strikes(this.weather.messageLost)) {
      this.simulation.timeline.after(this.delay(), deliver);
    }
    if (this.#strikes(this.weather.messageDoubled)) {
      this.simulation.timeline.after(this.delay() * 10, deliver);
    }
  }

  delay(): number {
    const { random } = this.simulation;
    return this.#strikes(this.weather.slow) ? random.between(10, 500) : random.between(0.1, this.latencyMs);
  }

  #strikes(probability: number): boolean {
    const strikes = this.simulation.random.chance(probability);
    if (strikes) {
      this.simulation.history.fault('network');
    }
    return strikes;
  }
}
