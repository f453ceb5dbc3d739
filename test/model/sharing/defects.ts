import { DEFECTS_OF_SHARING } from '../../explorer/defects-of-sharing.js';
import type { Defect } from '../properties/defect.js';

/** The finding of each defect of the lock table that shows here too. */
const FINDINGS: Readonly<Record<string, RegExp>> = {
  'readers that overlap starve a writer: a newcomer does not look at the queue': /which had queued before it/,
  'a reader waits for a writer that queued after it': /was not woken/,
  'a writer that gave up keeps readers out': /was not woken/,
  'the last reader hands over to no writer': /was not woken/,
  'one is woken where several fit': /was not woken/,
  'a release of one that leaves others in wakes nobody': /was not woken/,
  'a count outlives its last holder': /cannot be had|waits, although there is room|was not woken/,
  'an owner whose permit is over gives one back': /the renewal of|the release of|no room/,
  'room that is reserved is not taken': /no room/,
  'only the count of the newcomer decides': /no room/,
  'each reader has a fence of its own': /has the fence/,
  'a writer whose lease is over renews it beside the readers after it': /the renewal of/,
  'readers come in beside a writer that is in': /no room/,
  'a writer comes in while a reader is left': /no room/,
};

/** Defects of core with keys that are shared. */
const DEFECTS_OF_CORE: readonly Defect[] = [
  {
    defect: 'a method that writes runs inside one that reads',
    finding: /ended so: ran/,
    edits: [['lib/core/entering/acquisition.ts', 'if (this.call.shares === undefined) {', 'if (false) {']],
  },
  {
    defect: 'a process lets its readers in for as long as it has one',
    finding: /beside a writer that has queued/,
    edits: [['lib/core/leases/lease.ts', 'this.#clock.monotonic() - this.#servesSince < BESIDE_MS && ', '']],
  },
  {
    defect: 'the clocks of clients decide how long a lease lasts',
    finding: /over at the server|at once/,
    edits: [['lib/core/seam/time.ts', 'sentAt + ttlMs * 0.99 - 2', 'sentAt + ttlMs * 1.5']],
  },
  {
    defect: 'a reader that leaves releases the hold of those beside it',
    finding: /lost its lease|at once|over at the server/,
    edits: [['lib/core/leases/leases.ts', '(lease.shares !== undefined && !lease.leave())', 'false']],
  },
  {
    defect: 'a permit serves a call that asks for another count',
    finding: /at once|was answered false/,
    edits: [['lib/core/leases/lease.ts', 'next.shares === this.shares &&', '']],
  },
];

export const DEFECTS: readonly Defect[] = [
  ...DEFECTS_OF_SHARING.flatMap(({ defect, edits }) => (FINDINGS[defect] ? [{ defect, edits, finding: FINDINGS[defect] }] : [])),
  ...DEFECTS_OF_CORE,
];
