import type { Defect } from './defect.js';

/** Defects of batches; test/redis/batches.spec.ts finds those of their script. */
export const DEFECTS_OF_BATCHES: readonly Defect[] = [
  {
    defect: 'the replies of a batch are mixed up',
    finding: /which the store did not grant|has ended, and left|Two owners trust|undefined|answered an acquire with/,
    edits: [['lib/kit/batches.ts', 'pass(replies[at], asker)', 'pass(replies[replies.length - 1 - at], asker)']],
  },
];
