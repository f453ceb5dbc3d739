import { NAMES } from './tables.js';

/** The named lock that a process holds while it can be woken, as `presenceOf` has it in SQL: of its pid and digits, since such a name is short. */
export function presenceName(process: string): string {
  return `${NAMES}${process.split(':').slice(1, 3).join(':')}`;
}
