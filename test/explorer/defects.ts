import type { Edit } from '../support/defective.js';
import { DEFECTS_OF_TABLE } from '../model/properties/defects-of-table.js';
import { DEFECTS_OF_SHARING, type DefectInScope } from './defects-of-sharing.js';
import { SCOPES, type Flaw, type Scope, type ScopeName } from './scope.js';

/**
 * A defect, and the scope in which it shows soonest: edits of the lock table, or a flaw of the processes, which the
 * scope has.
 */
export interface PlantedDefect {
  readonly defect: string;
  readonly edits: readonly Edit[];
  readonly scope: Scope;
}

const FILE = 'lib/kit/lock-table.ts';

/** With all kinds of faults, these show no sooner than among 60,000 states. */
const LATE: Partial<Scope> = { kinds: ['late'] };

/** Where the defects show that the random scenarios find as well. */
const SCOPE_OF: Readonly<Record<string, readonly [ScopeName, Partial<Scope>?]>> = {
  'a renewal may shorten a lease': ['tickets', { kinds: ['stopped'], givesUp: false }],
  'a reservation that ran out is given to the same process again': ['trio'],
  'an exchange that comes late is granted after the release of its next caller': ['turns', LATE],
  'the counter does not know the block that was granted': ['blocks'],
};

/** A mistake of a process about commands that were not answered. */
const FLAWS: readonly (readonly [Flaw, ScopeName, Partial<Scope>?])[] = [
  ['leaves no mark', 'alone'],
  ['counts a lost acquire as answered', 'alone'],
  ['counts a lost join as answered', 'tickets'],
  ['counts a lost exchange as answered', 'turns', LATE],
  // Where no clock is set back, the server refuses the late acquire by its time.
  ['repeats a release without its mark', 'alone', { faults: 3, kinds: ['lost', 'late', 'back'] }],
  ['releases a lease that is over', 'alone'],
];

const DEFECTS_OF_TABLE_ONLY: readonly DefectInScope[] = [
  ...DEFECTS_OF_TABLE.map(({ defect, edits }) => {
    const [scope, changes] = SCOPE_OF[defect] ?? ['pair'];
    return { defect, edits, scope, ...(changes && { changes }) };
  }),
  {
    defect: 'a turn that is given up is not handed over',
    scope: 'trio',
    edits: [
      [
        FILE,
        '(state.dequeue(name) ? state.shared !== undefined : state.unreserve(name))',
        '(state.dequeue(name) ? state.shared !== undefined : state.unreserve(name) && false)',
      ],
    ],
  },
  {
    defect: 'a release frees the lock although another hold is in it',
    scope: 'tickets',
    edits: [[FILE, 'const last = answer && (hold.shares !== undefined || state.grant?.holds.size === 0);', 'const last = answer;']],
  },
  {
    defect: 'a hold joins after its own release',
    scope: 'tickets',
    edits: [[FILE, 'grant.fence !== hold.fence || this.#done.get(hold.id) !== undefined', 'grant.fence !== hold.fence']],
  },
  {
    defect: 'a ticket enters the lock of the owner after',
    scope: 'guests',
    edits: [[FILE, 'grant?.owner !== hold.owner || grant.fence !== hold.fence', '!grant']],
  },
  {
    defect: 'an exchange overtakes although its lock was gone',
    scope: 'turns',
    edits: [[FILE, 'const mayGrant = last && mayOvertake', 'const mayGrant = mayOvertake']],
  },
];

export const DEFECTS: readonly PlantedDefect[] = [
  ...[...DEFECTS_OF_TABLE_ONLY, ...DEFECTS_OF_SHARING].map(({ defect, edits, scope, changes }) => ({
    defect,
    edits,
    scope: { ...SCOPES[scope], ...changes },
  })),
  ...FLAWS.map(([flaw, scope, changes]) => ({ defect: `a process ${flaw}`, edits: [], scope: { ...SCOPES[scope], ...changes, flaw } })),
];
