import { hash, randomUUID } from 'node:crypto';

/** The length of an owner's id, in characters of 6 bits. */
const ID_LENGTH = 22;

/**
 * Who holds locks: one for each acquisition that acquires a key anew, the same for all such keys. Whoever knows the
 * secret may enter the owner's locks, so it leaves the process in tickets only; stores, and all that traces their
 * commands, see the id, which is the secret's SHA-256.
 */
export class Owner {
  readonly id: string;
  readonly #secret: string;

  constructor(secret: string = randomUUID()) {
    this.#secret = secret;
    this.id = hash('sha256', secret, 'base64url').slice(0, ID_LENGTH);
  }

  /** For tickets: a capability, never logged. */
  revealSecret(): string {
    return this.#secret;
  }
}
