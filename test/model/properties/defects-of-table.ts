import { crowds, relays } from './crowds.js';
import type { Defect } from './defect.js';

/** Defects of the lock table. */
export const DEFECTS_OF_TABLE: readonly Defect[] = [
  {
    defect: 'a renewal does not look whose the lock is',
    finding: /can be renewed/,
    edits: [['lib/kit/lock-table.ts', '!state.holds(hold) || state.grant.fence !== hold.fence', 'false']],
  },
  {
    defect: 'a renewal makes a lock that is gone anew',
    finding: /can be renewed/,
    edits: [
      [
        'lib/kit/lock-table.ts',
        `  renew(hold: HoldRecord): boolean {
    const state = this.#stateOf(hold.key);`,
        `  renew(hold: HoldRecord): boolean {
    const state = this.#open(hold.key);
    if (!state.grant) state.grantTo(hold, hold.fence, 0, '', undefined);`,
      ],
    ],
  },
  {
    defect: 'an acquire that is repeated takes another fence',
    finding: /which is in/,
    edits: [
      [
        'lib/kit/lock-table.ts',
        'return { fence: state.confirm(hold) };',
        'return { fence: Object.assign(state.grant ?? {}, { fence: ++this.#fence }).fence };',
      ],
    ],
  },
  {
    defect: 'fences are counted from one',
    finding: /is above/,
    edits: [['lib/kit/lock-table.ts', 'Math.max(this.#fence + 1, Math.floor(since * 1000))', 'this.#fence + 1']],
  },
  {
    defect: 'a release leaves no mark',
    finding: /which was released before|first release/,
    edits: [['lib/kit/lock-table.ts', 'this.#done.set(hold.id, answer);', '']],
  },
  {
    defect: 'a renewal may shorten a lease',
    finding: /The store answered false, and not true/,
    seed: 3,
    edits: [['lib/kit/key-state.ts', 'endsAt: Math.max(this.#grant.endsAt, endsAt)', 'endsAt']],
  },
  {
    defect: 'a reservation that ran out is given to the same process again',
    finding: /was free for|cannot be had/,
    scenarios: crowds,
    edits: [
      [
        'lib/kit/key-state.ts',
        `    this.#queue.delete(place.name);
    if (sharesOfPlace`,
        '    if (sharesOfPlace',
      ],
    ],
  },
  {
    defect: 'an acquire that comes late is granted after its own release',
    finding: /which was released before/,
    edits: [['lib/kit/lock-table.ts', 'if (this.#done.get(hold.id) !== undefined) {', 'if (false) {']],
  },
  {
    defect: 'an exchange that comes late is granted after the release of its next caller',
    finding: /which was released before/,
    scenarios: crowds,
    seed: 63,
    edits: [['lib/kit/lock-table.ts', ' && this.#done.get(next.id) === undefined;', ';']],
  },
  {
    defect: 'a release frees the lock of another owner',
    finding: /still in at its release/,
    edits: [
      [
        'lib/kit/lock-table.ts',
        'state?.removeHold(hold) === true;',
        'state?.grant !== undefined && [...state.grant.holds.keys()].every((id) => state.removeHold({ ...hold, id, owner: state.grant?.owner ?? "" }));',
      ],
    ],
  },
  {
    defect: 'a newcomer takes a free lock before the processes that queue',
    finding: /out of order/,
    scenarios: crowds,
    edits: [
      [
        'lib/kit/lock-table.ts',
        'return (isNext && state.hasRoomFor(shares)) || (place !== undefined && state.isReservedFor(place.name));',
        'return true;',
      ],
    ],
  },
  {
    defect: 'a released lock is not handed over',
    finding: /was free for/,
    scenarios: crowds,
    edits: [
      [
        'lib/kit/lock-table.ts',
        `    if (last) {
      this.#handOver(hold.key);
    }
    return answer;`,
        `    return answer;`,
      ],
    ],
  },
  {
    defect: 'the counter does not know the block that was granted',
    finding: /that fence .* is above/,
    scenarios: relays,
    edits: [['lib/kit/lock-table.ts', 'this.#fence = fence + hold.fences - 1;', 'this.#fence = fence;']],
  },
];
