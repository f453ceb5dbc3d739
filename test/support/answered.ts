import { gotNoReply } from './patient';

/** How often a call is made that gets no reply. */
const MOST_TRIES = 4;

/** What a call with a single attempt ends with, once it was answered: a server that stood still said nothing. `tries` counts from 1. */
export async function answered<T>(call: (tries: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call(tries);
    } catch (error) {
      if (!gotNoReply(error) || tries === MOST_TRIES) {
        throw error;
      }
    }
  }
}
