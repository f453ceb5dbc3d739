import { LockStoreError } from '../../../lib/core/words/errors.js';

/** On which of several servers something was made, or nobody answered whether: just that is removed. */
export class Made<Server> {
  readonly #servers = new Set<Server>();

  async on(server: Server, make: () => Promise<void>): Promise<void> {
    this.#servers.add(server);
    try {
      await make();
    } catch (error) {
      if (!(error instanceof LockStoreError && error.unknown)) {
        this.#servers.delete(server);
      }
      throw error;
    }
  }

  async remove(remove: (server: Server) => Promise<unknown>): Promise<void> {
    await Promise.all([...this.#servers].map(remove));
  }
}
