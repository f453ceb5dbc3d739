import { NAMES } from '../tables.js';

/** The named lock that a process holds while it can be woken, as `presenceOf` has it in SQL: of its pid and digits, since such a name is short. */
export function presenceName(process: string): string {
  return `${NAMES}${process.split(':').slice(1, 3).join(':')}`;
}

/** The named lock that a process waits for while it sleeps. */
export function gateName(process: string): string {
  return `${presenceName(process)}:gate`;
}
