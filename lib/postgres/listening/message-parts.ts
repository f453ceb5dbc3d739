import { randomUUID } from 'node:crypto';

/** A payload of NOTIFY has fewer than 8,000 bytes. */
const MOST_BYTES = 7_500;
/** How many texts may be incomplete at a time, and how many parts one may have: about 400 KiB. */
const MOST_TEXTS = 64;
const MOST_PARTS = 74;

/**
 * Splits a text into as many payloads as it takes, `note <id>:<which>:<of how many> <part>`; in base64, since a part of
 * a character is no character.
 */
export function partsOf(text: string): string[] {
  const encoded = Buffer.from(text).toString('base64');
  const count = Math.max(1, Math.ceil(encoded.length / MOST_BYTES));
  const id = randomUUID();
  return Array.from({ length: count }, (_, at) => `note ${id}:${at}:${count} ${encoded.slice(at * MOST_BYTES, (at + 1) * MOST_BYTES)}`);
}

/** Puts texts together again. Where there are many, the oldest texts that miss a part are forgotten. */
export class MessageParts {
  readonly #texts = new Map<string, (string | undefined)[]>();

  /** The whole text, where this payload is its last part. Ignores payloads of other kinds. */
  take(payload: string): string | undefined {
    const [, id, at, of, part] = /^note ([\w-]{1,40}):(\d{1,3}):(\d{1,3}) (\S*)$/.exec(payload) ?? [];
    const count = Number(of);
    if (id === undefined || part === undefined || count < 1 || count > MOST_PARTS || Number(at) >= count) {
      return undefined;
    }
    const parts = this.#texts.get(id) ?? Array.from<string | undefined>({ length: count });
    parts[Number(at)] = part;
    this.#texts.delete(id);
    if (parts.length === count && parts.every((each) => each !== undefined)) {
      return Buffer.from(parts.join(''), 'base64').toString();
    }
    this.#texts.set(id, parts);
    if (this.#texts.size > MOST_TEXTS) {
      this.#texts.delete(this.#texts.keys().next().value as string);
    }
    return undefined;
  }
}
