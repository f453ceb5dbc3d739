import { hash, randomBytes } from 'node:crypto';

/** The length of an owner's id, in characters of 6 bits. */
const ID_LENGTH = 22;
/** A secret has 128 random bits. */
const SECRET_BYTES = 16;

/**
 * Who holds locks: one for each acquisition that acquires a key anew, the same for all such keys. Whoever knows the
 * secret may enter the owner's locks, so it leaves the process in tickets only; stores, and all that traces their
 * commands, see the id, which is the secret's SHA-256.
 */
export class Owner {
  /** Random bytes for the next secrets: it costs little more to make many. */
  static #random = Buffer.alloc(0);
  static #used = 0;

  readonly id: string;
  readonly #secret: string;

  constructor(secret: string = Owner.#newSecret()) {
    this.#secret = secret;
    this.id = hash('sha256', secret, 'base64url').slice(0, ID_LENGTH);
  }

  static #newSecret(): string {
    if (Owner.#used === Owner.#random.length) {
      Owner.#random = randomBytes(64 * SECRET_BYTES);
      Owner.#used = 0;
    }
    return Owner.#random.toString('base64url', Owner.#used, (Owner.#used += SECRET_BYTES));
  }

  /** For tickets: a capability, never logged. */
  revealSecret(): string {
    return this.#secret;
  }
}
