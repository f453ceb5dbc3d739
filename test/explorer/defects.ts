import type { Edit } from '../support/defective.js';
import { DEFECTS_OF_TABLE } from '../model/properties/defects-of-table.js';
import type { ScopeName } from './scope.js';

/** A defect of the lock table, and the scope in which it shows soonest. */
export interface PlantedDefect {
  readonly defect: string;
  readonly edits: readonly Edit[];
  readonly scope: ScopeName;
}

const FILE = 'lib/stores/kit/lock-table.ts';

/** Where the defects show that the random scenarios find as well. */
const SCOPE_OF: Readonly<Record<string, ScopeName>> = {
  'a renewal may shorten a lease': 'tickets',
  'a reservation that ran out is given to the same process again': 'trio',
  'an exchange that comes late is granted after the release of its next caller': 'turns',
  'the counter does not know the block that was granted': 'blocks',
};

export const DEFECTS: readonly PlantedDefect[] = [
  ...DEFECTS_OF_TABLE.map(({ defect, edits }) => ({ defect, edits, scope: SCOPE_OF[defect] ?? 'pair' })),
  {
    defect: 'a turn that is given up is not handed over',
    scope: 'trio',
    edits: [
      {
        file: FILE,
        from: '      state.unreserve();\n      this.#handOver(key);',
        to: '      state.unreserve();',
      },
    ],
  },
  {
    defect: 'a release frees the lock although another hold is in it',
    scope: 'tickets',
    edits: [
      { file: FILE, from: 'const last = answer && state?.grant?.holds.size === 0;', to: 'const last = answer && state !== undefined;' },
    ],
  },
  {
    defect: 'a hold joins after its own release',
    scope: 'tickets',
    edits: [{ file: FILE, from: " || this.#done.get(hold.id) !== undefined) {\n      return 'ended';", to: ") {\n      return 'ended';" }],
  },
  {
    defect: 'a ticket enters the lock of the owner after',
    scope: 'guests',
    edits: [{ file: FILE, from: 'grant?.owner !== hold.owner || grant.fence !== hold.fence', to: '!grant' }],
  },
  {
    defect: 'an exchange overtakes although its lock was gone',
    scope: 'turns',
    edits: [{ file: FILE, from: 'const mayGrant = last && mayOvertake', to: 'const mayGrant = mayOvertake' }],
  },
];
