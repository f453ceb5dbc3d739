/** The command was written wrongly; the message says how to write it. */
export class WrongUse extends Error {
  override readonly name = 'WrongUse';
}
