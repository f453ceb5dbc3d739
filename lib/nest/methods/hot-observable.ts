import type { Observable, Operator } from 'rxjs';
import { isObservable } from './return-kind.js';

/** An Observable of rxjs 7, of whichever copy, whose values are gone for later subscribers. */
export interface HotObservable extends Observable<unknown> {
  readonly source: HotObservable | undefined;
  readonly operator: Operator<unknown, unknown> | undefined;
  /** Nest's: ends the buffer that keeps the messages of a gRPC call until its handler has returned. */
  drainBuffer?(): void;
}

/**
 * Whether a value is a Subject, its `asObservable()`, or made of one by operators. Kinds of Subject that replay are not
 * hot, and neither is an Observable that begins its own work for each subscriber.
 */
export function isHot(value: object): value is HotObservable {
  try {
    return isObservable(value) && (isSubject(value) || isMadeOfSubject(value as HotObservable));
  } catch {
    // The value is the user's: whatever it does when it is read, the call goes on.
    return false;
  }
}

/** Whether an Observable is a plain Subject that is open. Subjects that replay have a `_subscribe` of their own. */
export function isSubject(value: object): boolean {
  let owner: object | null = value;
  while (owner && !Object.hasOwn(owner, '_subscribe')) {
    owner = Object.getPrototypeOf(owner) as object | null;
  }
  return owner !== null && Object.hasOwn(owner, 'asObservable') && !('closed' in value && value.closed === true);
}

function isMadeOfSubject(value: HotObservable): boolean {
  return Object.hasOwn(value, 'source') && value.source !== undefined && isHot(value.source);
}
