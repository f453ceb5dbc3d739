/**
 * The application cannot start, for a reason that its operator can mend: the message says how, and no stack is of use.
 */
export class StartUpError extends Error {}
