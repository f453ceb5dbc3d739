import type { LockStore } from '../../../lib/core/seam/lock-store';

/** The servers of one application, and what is to happen to them. */
export interface World {
  /** A store of its own for each application. */
  readonly connect: () => LockStore;
  /** Where `doctor` finds the servers, or the first master; undefined where it cannot be given them. */
  readonly address?: NodeJS.ProcessEnv | undefined;
  strike(): unknown;
  stop(): Promise<unknown>;
}

/** Makes the world of one fault, with the name that the table has of it. */
export type Faults = Readonly<Record<string, () => Promise<World>>>;
