import { LockConfigurationError, type LockError } from '../../core/words/errors.js';
import type { Connection } from './connection.js';
import { clusterNodeError, isPassing, isUnreachable, setupError, toLockError } from './redis-errors.js';
import type { Script } from '../scripts/script.js';

/** The refusal of a client that is one too many. */
const FULL = /^-(ERR max number of clients reached)/;

/**
 * For how long an error of a node explains why commands are not answered, in milliseconds: later attempts have errors
 * of their own.
 */
const NODE_ERROR_MS = 2_000;

/** The failures of a connection, which explain why its commands are not answered. */
export class ConnectionFailures {
  /** The last error that the connection itself reported, unless it was ready since. */
  #last: Error | undefined;
  /** Why a node of a cluster, or a server that is full, could not be reached, and when that was. */
  #node: { readonly error: Error; readonly at: number } | undefined;
  /**
   * Set where the connection leads to another database or user than the one asked for. It is a field, since each
   * command reads it.
   */
  setupRefusal: Error | undefined;
  /** Whether the client sends a command again whose reply was lost, and does not say so: a Cluster of ioredis. */
  sendsAgain = false;
  #isCluster = false;

  watch(connection: Connection): void {
    this.#isCluster = connection.isCluster === true;
    this.sendsAgain = this.#isCluster && connection.slots !== undefined;
    connection.on('connect', () => {
      // A refusal of an earlier attempt says nothing of this one.
      if (this.#last?.name === 'ReplyError') {
        this.#last = undefined;
      }
      // A server that is full says so unasked. ioredis takes it for the answer to a command of its own that may fail.
      connection.stream?.once?.('data', (chunk) => {
        const [, refusal] = FULL.exec(chunk.toString('latin1', 0, 200)) ?? [];
        if (refusal !== undefined) {
          this.#node = { error: Object.assign(new Error(refusal), { name: 'ReplyError' }), at: performance.now() };
        }
      });
    });
    connection.on('ready', () => {
      // ioredis goes on where SELECT is refused, and would keep the locks in another database.
      const refusal = this.#last?.name === 'ReplyError' ? this.#last : undefined;
      this.setupRefusal = refusal && !isPassing(refusal) ? setupError(refusal) : refusal;
      this.#last = undefined;
    });
    connection.on('node error', (error: Error) => {
      // A close of the connection follows from its error, and explains nothing more.
      if (!isUnreachable(error)) {
        this.#node = { error, at: performance.now() };
      }
    });
    connection.on('error', (error: Error) => this.note(error));
  }

  /** This explains why commands are not answered from now on, until the connection is ready again. */
  note(error: Error): void {
    this.#last = error;
  }

  /** The error of a command that failed. */
  explain(error: unknown, key: string, script?: Script): LockError {
    if (error instanceof LockConfigurationError) {
      return error;
    }
    if (this.#last instanceof LockConfigurationError) {
      return this.#last;
    }
    return (
      (this.#isCluster ? undefined : clusterNodeError(error, key)) ??
      toLockError(error, key, (isUnreachable(error) && this.#recentNodeError()) || this.#last, script, this.sendsAgain)
    );
  }

  /** An old one must not be blamed: a password that was wrong for a while would end calls that may wait. */
  #recentNodeError(): Error | undefined {
    return this.#node && performance.now() - this.#node.at < NODE_ERROR_MS ? this.#node.error : undefined;
  }
}
