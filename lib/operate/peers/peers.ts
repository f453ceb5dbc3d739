import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { atMost, type Clock } from '../../core/seam/time.js';
import type { Leases } from '../../core/leases/leases.js';
import type { LockHealth } from '../../core/words/lock-health.js';
import type { Waiters } from '../../core/entering/waiters.js';
import type { DeadlockSearch } from './deadlock-search.js';
import { FlightRecorder } from './flight-recorder.js';
import type { ForcedNotice, IncidentLog } from './incident-log.js';
import type { Messenger } from './messenger.js';
import { ownAnswer } from './own-answer.js';
import { PROBE, type Probe } from './probe-message.js';
import { EXPECTED_MS, RollCall, type SurveyOptions } from './roll-call.js';
import { ANSWER, BYE, FORCED, ROLL, type ByeMessage, type ForcedMessage, type Roll, type RollAnswer } from './roll-message.js';
import { shaped } from './shape.js';
import type { Survey } from './survey.js';

/** How many rolls a process answers within a second at most. */
const MOST_ANSWERS = 10;

/** How long an answer waits for the health of the store, in milliseconds: shorter than answers are taken at least. */
const HEALTH_MS = 200;

interface PeersParts {
  /** The name under which the store is registered. */
  readonly name: string;
  readonly messenger: Messenger;
  readonly clock: Clock;
  /** Whether leases end by time. */
  readonly expires: boolean;
  readonly leases: Leases;
  readonly waiters: Waiters;
  readonly deadlocks: DeadlockSearch | undefined;
  readonly incidents: IncidentLog;
  readonly health: () => Promise<LockHealth>;
}

/**
 * The messages between this process and the others that use the store. Nothing is sent unless somebody asks, or has
 * asked lately.
 */
export class Peers {
  readonly #parts: PeersParts;
  readonly #startedAt: number;
  /** This process in the store, and which of its applications. */
  readonly #id: string;
  readonly #roll: RollCall;
  #recorder: FlightRecorder | undefined;
  /** When it answered last, for as many answers as it may give within a second. */
  readonly #answered: number[] = [];
  #hasLeft = false;

  constructor(parts: PeersParts) {
    const { clock, name, messenger } = parts;
    const process = messenger.process ?? `${hostname()}:${globalThis.process.pid}`;
    this.#parts = parts;
    this.#startedAt = clock.monotonic();
    this.#id = `${process}#${randomUUID().slice(0, 4)}`;
    this.#roll = new RollCall(clock, name, process, messenger);
    messenger.onMessage((message, length) => this.#heard(message, length));
  }

  /** Keeps the calls that end from now on. */
  record(): FlightRecorder {
    return (this.#recorder ??= new FlightRecorder(this.#parts.clock));
  }

  /** Collects the answers of all processes. The first answer is this process's own. */
  async survey(options: SurveyOptions): Promise<Survey> {
    const health = options.health ? await this.#parts.health() : undefined;
    return this.#roll.survey(options, this.#ownAnswer('', options, health));
  }

  /** This process released a lock by force: its holder wants to know who did, and why. */
  tellForced(notice: ForcedNotice): void {
    this.#parts.messenger.send({ ...notice, kind: 'forced', from: this.#id } satisfies ForcedMessage);
  }

  /**
   * This process closes, and answers no more. A process that has asked lately need not wait for its answer; where
   * nobody has asked, nobody is told.
   */
  leave(): void {
    this.#hasLeft = true;
    const { messenger, clock } = this.#parts;
    if (clock.monotonic() - (this.#answered.at(-1) ?? -Infinity) < EXPECTED_MS) {
      messenger.send({ kind: 'bye', process: this.#id } satisfies ByeMessage);
    }
  }

  #heard(received: unknown, length: number): void {
    const message = messageIn(received);
    if (message?.kind === 'probe') {
      this.#parts.deadlocks?.heard(message);
    } else if (message?.kind === 'roll') {
      void this.#answer(message);
    } else if (message?.kind === 'forced') {
      this.#parts.incidents.heard(message);
    } else if (message?.kind === 'bye') {
      this.#roll.left(message.process);
    } else if (message && message.process.id !== this.#id) {
      this.#roll.heard(message, length);
    }
  }

  async #answer(roll: Roll): Promise<void> {
    const { messenger, clock } = this.#parts;
    // The survey of this process has its own answer already.
    if (roll.from === this.#id || this.#hasLeft || !this.#mayAnswer(clock.monotonic())) {
      return;
    }
    const health = roll.health ? await this.#healthSoon() : undefined;
    // This process may have left meanwhile.
    for (const answer of this.#hasLeft ? [] : this.#ownAnswer(roll.id, roll, health)) {
      messenger.send(answer, roll.to);
    }
  }

  /** A stranger who asks all the time must not keep a process busy. */
  #mayAnswer(now: number): boolean {
    const [oldest = -Infinity] = this.#answered;
    if (this.#answered.length >= MOST_ANSWERS && now - oldest < 1_000) {
      return false;
    }
    this.#answered.push(now);
    this.#answered.splice(0, this.#answered.length - MOST_ANSWERS);
    return true;
  }

  /** Undefined where the store takes its time: whoever asks waits for the answer no longer. */
  async #healthSoon(): Promise<LockHealth | undefined> {
    let health: LockHealth | undefined;
    const asked = this.#parts.health().then((answer) => (health = answer));
    await atMost(asked, HEALTH_MS);
    return health;
  }

  #ownAnswer(id: string, { recent, incidentsMs }: SurveyOptions, health: LockHealth | undefined): RollAnswer[] {
    const { clock, leases, waiters, expires, incidents } = this.#parts;
    return ownAnswer(id, {
      id: this.#id,
      upMs: clock.monotonic() - this.#startedAt,
      expires,
      leases: leases.running,
      waiting: waiters.calls,
      health,
      ended: (recent && this.#recorder?.calls) || [],
      incidents: incidentsMs === undefined ? [] : incidents.lately(incidentsMs),
    });
  }
}

type PeerMessage = Probe | Roll | ForcedMessage | ByeMessage | RollAnswer;

/** Reads a message with its known fields only: it may be full of fields that nobody reads. Undefined for any other. */
function messageIn(received: unknown): PeerMessage | undefined {
  for (const shape of [PROBE, ROLL, FORCED, BYE, ANSWER]) {
    const message = shaped(received, shape);
    if (message !== undefined) {
      return message as PeerMessage;
    }
  }
  return undefined;
}
