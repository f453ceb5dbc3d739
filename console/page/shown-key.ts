import { createHash } from 'node:crypto';

/** How the page shows a key. */
export type ShowKey = (key: string) => string;

export const showWhole: ShowKey = (key) => key;

/** The same key has the same hash in every process. Whoever can guess a key can know it by its hash. */
export const showHash: ShowKey = (key) => `#${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;
