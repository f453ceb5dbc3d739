/** The first byte of a request: asks to prepare a statement, or to run a prepared one. */
const PREPARE = 0x16;
const EXECUTE = 0x17;
/** Before the first byte of each packet: its length and its number. */
const HEADER = 4;

/** The texts of what one connection of MySQL runs, also where it names a statement that it has prepared. */
export class PreparedTexts {
  readonly #texts = new Map<number, string>();
  #preparing: string | undefined;

  /** The text of what a request runs; '' where it runs nothing. */
  textOf(request: Buffer): string {
    const kind = request[HEADER];
    if (kind === PREPARE) {
      this.#preparing = request.toString('latin1', HEADER + 1);
      return '';
    }
    if (kind === EXECUTE) {
      return this.#texts.get(request.readUInt32LE(HEADER + 1)) ?? '';
    }
    return request.toString('latin1', HEADER + 1);
  }

  /** A reply; one that is to a request to prepare has the statement's number. */
  read(reply: Buffer): void {
    if (this.#preparing !== undefined && reply[HEADER] === 0) {
      this.#texts.set(reply.readUInt32LE(HEADER + 1), this.#preparing);
    }
    this.#preparing = undefined;
  }
}
