import { LockConfigurationError } from '../core/words/errors.js';
import { shown } from '../core/words/shown.js';
import { makeTickets, enterTickets, type EnterTicketsOptions } from '../nest/current-tickets.js';
import { TICKETS_FIELD } from './names.js';

/** A payload that may carry tickets. */
export type WithTickets<Payload extends object> = Payload & { readonly [TICKETS_FIELD]?: string };

/**
 * The payload of a message or job, with the field `lockTickets` where the running code is inside a lock; otherwise the
 * payload itself. For `client.send(pattern, withTickets(payload))` and `queue.add(name, withTickets(data))`. Brokers
 * and queues keep the payload, so use `withTickets` where they are trusted, and where the lock's holder waits for the
 * answer. Throws `LockConfigurationError` for a payload that is no plain object.
 */
export function withTickets<Payload extends object>(payload: Payload): WithTickets<Payload> {
  if (!isPlain(payload)) {
    throw new LockConfigurationError(
      `withTickets: the payload is ${shown(payload)}, and tickets are a field of a plain object. Pass one, such as { id } or { ...payload }; ` +
        'for a record of Nest its data: new NatsRecordBuilder(withTickets(data)).',
    );
  }
  const text = makeTickets();
  return text === undefined ? payload : { ...payload, [TICKETS_FIELD]: text };
}

/**
 * Takes the tickets out of a payload that `withTickets` made, so that nothing else sees or logs them, and runs `fn` as
 * `enterTickets` does. For a worker of BullMQ: `enterTicketsOf(job.data, () => this.ship(job.data))`. Throws
 * `LockConfigurationError` for the job itself.
 */
export function enterTicketsOf<T>(payload: unknown, fn: () => T, options: EnterTicketsOptions = {}): T {
  return enterTickets(takeTickets(payload), fn, options);
}

function takeTickets(payload: unknown): string | undefined {
  if (!hasTickets(payload)) {
    const { data } = Object(payload) as { readonly data?: unknown };
    if (hasTickets(data)) {
      throw new LockConfigurationError(
        'enterTicketsOf was given an object whose data has the tickets, such as a job. Pass that: enterTicketsOf(job.data, …).',
      );
    }
    return undefined;
  }
  const { [TICKETS_FIELD]: text } = payload;
  delete payload[TICKETS_FIELD];
  return text as string | undefined;
}

function hasTickets(payload: unknown): payload is { [name: string]: unknown } {
  return isFields(payload) && Object.hasOwn(payload, TICKETS_FIELD);
}

/**
 * A copy of any other object would not be sent as the original is: a date, a record with headers, an object with
 * `toJSON`.
 */
function isPlain(payload: object): boolean {
  return isFields(payload) && [Object.prototype, null].includes(Object.getPrototypeOf(payload) as object | null);
}

function isFields(payload: unknown): payload is { [name: string]: unknown } {
  return typeof payload === 'object' && payload !== null && !Array.isArray(payload);
}
