import type { Edit } from '../support/defective.js';
import type { Scope, ScopeName } from './scope.js';

const TABLE = 'lib/kit/lock-table.ts';
const KEY = 'lib/kit/key-state.ts';
const SHARED = 'lib/kit/shared-holds.ts';

export interface DefectInScope {
  readonly defect: string;
  readonly scope: ScopeName;
  /** Changes of the scope, so that the defect shows sooner. */
  readonly changes?: Partial<Scope>;
  readonly edits: readonly Edit[];
}

/** Each is a fall that readers and semaphores of other libraries have had, or one beside it. */
export const DEFECTS_OF_SHARING: readonly DefectInScope[] = [
  {
    defect: 'readers that overlap starve a writer: a newcomer does not look at the queue',
    scope: 'readers',
    edits: [
      [
        TABLE,
        'return (isNext && state.hasRoomFor(shares)) || (place !== undefined && state.isReservedFor(place.name));',
        'return ((shares !== undefined || isNext) && state.hasRoomFor(shares)) || (place !== undefined && state.isReservedFor(place.name));',
      ],
    ],
  },
  {
    defect: 'a reader waits for a writer that queued after it',
    scope: 'writers',
    edits: [
      [
        TABLE,
        '!state.hasRoomFor(sharesOfPlace(first.name))) {',
        "!state.hasRoomFor(sharesOfPlace(first.name)) || (first.name.endsWith('R') && [...state.queue.keys()].some((name) => !sharesOfPlace(name)))) {",
      ],
    ],
  },
  {
    defect: 'a writer that gave up keeps readers out',
    scope: 'readers',
    edits: [[TABLE, 'state.dequeue(name) ? state.shared !== undefined : ', '!state.dequeue(name) && ']],
  },
  {
    defect: 'the last reader hands over to no writer',
    scope: 'readers',
    edits: [
      [
        KEY,
        `      const was = this.#shared?.remove(hold) === true;
      this.#forgetShared();`,
        '      const was = this.#shared?.remove(hold) === true;',
      ],
    ],
  },
  {
    defect: 'one is woken where several fit',
    scope: 'readers',
    edits: [
      [
        TABLE,
        `        state.unreserve(first.name);
        skipped++;
      }`,
        `        state.unreserve(first.name);
        skipped++;
      } else {
        return true;
      }`,
      ],
    ],
  },
  {
    defect: 'a release of one that leaves others in wakes nobody',
    scope: 'permits',
    edits: [
      [
        TABLE,
        'const last = answer && (hold.shares !== undefined || ',
        'const last = answer && ((hold.shares !== undefined && state.shared === undefined) || ',
      ],
    ],
  },
  {
    defect: 'a renewal that outlives its release lets its hold in again',
    scope: 'readers',
    edits: [
      [
        TABLE,
        `const isIn = state?.shared?.fence === hold.fence && state.holds(hold);
`,
        `const isIn = state?.shared?.fence === hold.fence;
      if (isIn && !state.holds(hold)) state.grantTo(hold, hold.fence, 0, '', undefined);
`,
      ],
    ],
  },
  {
    defect: 'a renewal lengthens the leases of all that share the key',
    scope: 'readers',
    edits: [
      [
        SHARED,
        '    const hold = this.#holds.get(id);\n    if (hold) {',
        '    if (by === "" && !lingering) for (const other of this.#holds.keys()) if (other !== id) this.lengthen({ id: other, ttlMs, by: "x" } as HoldRecord);\n    const hold = this.#holds.get(id);\n    if (hold) {',
      ],
    ],
  },
  {
    defect: 'a count outlives its last holder',
    scope: 'counts',
    edits: [
      [SHARED, '  #fence = 0;\n', '  #fence = 0;\n  #most = 1_000;\n'],
      [
        SHARED,
        '    this.#fence = fence;\n',
        "    this.#fence = fence;\n    this.#most = Math.min(this.#most, shares === 'read' ? 1_000 : shares);\n",
      ],
      [
        SHARED,
        "let most = shares === 'read' ? MOST_HOLDS : shares;",
        "let most = Math.min(this.#most, shares === 'read' ? MOST_HOLDS : shares);",
      ],
      [SHARED, 'return this.#holds.size === 0 && this.#claims.size === 0;', 'return false;'],
    ],
  },
  {
    defect: 'an owner whose permit is over gives one back',
    scope: 'seat',
    edits: [
      [
        SHARED,
        'return this.has(hold) && this.#holds.delete(hold.id);',
        'return this.#holds.delete(this.has(hold) ? hold.id : ([...this.#holds.keys()][0] ?? ""));',
      ],
    ],
  },
  {
    defect: 'room that is reserved is not taken',
    scope: 'seat',
    edits: [[SHARED, 'return this.#holds.size + this.#claims.size < most;', 'return this.#holds.size < most;']],
  },
  {
    defect: 'a reserved place that is claimed is counted twice',
    scope: 'permits',
    edits: [[SHARED, '      this.#claims.delete(place.name);\n    }\n    this.#fence', '    }\n    this.#fence']],
  },
  {
    defect: 'only the count of the newcomer decides',
    scope: 'counts',
    edits: [[SHARED, "most = other === 'read' ? most : Math.min(most, other);", '']],
  },
  {
    defect: 'only the counts of those that are in decide',
    scope: 'counts',
    edits: [
      [
        SHARED,
        "let most = shares === 'read' ? MOST_HOLDS : shares;",
        "let most = shares === 'read' || this.#holds.size + this.#claims.size > 0 ? MOST_HOLDS : shares;",
      ],
    ],
  },
  {
    defect: 'the count of a place that has room reserved does not count',
    scope: 'counts',
    edits: [[SHARED, '      yield sharesOfPlace(name) as Shares;', "      yield name.endsWith('R') ? 'read' : MOST_HOLDS;"]],
  },
  {
    defect: 'a lease that runs keeps one in that is over',
    scope: 'permits',
    edits: [
      [
        SHARED,
        '      if (endsAt <= now) {\n        this.#holds',
        '      if ([...this.#holds.values()].every((hold) => hold.endsAt <= now) && endsAt <= now) {\n        this.#holds',
      ],
    ],
  },
  {
    defect: 'the fence of a writer is not above those of the readers before it',
    scope: 'readers',
    edits: [[TABLE, 'this.#fence = fence + hold.fences - 1;', 'if (hold.shares === undefined) this.#fence = fence + hold.fences - 1;']],
  },
  {
    defect: 'each reader has a fence of its own',
    scope: 'readers',
    edits: [[TABLE, 'if (hold.shares !== undefined && state.shared && state.shared.holds.size > 0) {', 'if (false) {']],
  },
  {
    defect: 'a writer whose lease is over renews it beside the readers after it',
    scope: 'writers',
    changes: { processes: 2, wants: ['write', 'read'] },
    edits: [
      [
        TABLE,
        '    if (!state?.grant || !state.holds(hold) || state.grant.fence',
        "    if (state?.shared && !state.grant) state.grantTo(hold, hold.fence, 0, '', undefined);\n    if (!state?.grant || !state.holds(hold) || state.grant.fence",
      ],
    ],
  },
  {
    defect: 'readers come in beside a writer that is in',
    scope: 'readers',
    edits: [
      [KEY, 'if (this.#grant ?? this.#turn) {', 'if ((this.#grant ?? this.#turn) && !shares) {'],
      [TABLE, 'if (!state.grant && (overtakes', 'if ((!state.grant || hold.shares) && (overtakes'],
    ],
  },
  {
    defect: 'a writer comes in while a reader is left',
    scope: 'readers',
    edits: [
      [
        KEY,
        'return this.#shared === undefined || (shares !== undefined',
        'return (this.#shared?.holds.size ?? 0) < 2 || (shares !== undefined',
      ],
    ],
  },
  {
    defect: 'reserved room that nobody claims is never given up',
    scope: 'seat',
    changes: { processes: 2, wants: [1, 1] },
    edits: [[SHARED, '        this.#claims.delete(name);\n      }\n    }\n  }', '      }\n    }\n  }']],
  },
  {
    defect: 'reserved room that is given up is not handed over',
    scope: 'seat',
    edits: [
      [
        TABLE,
        'state.dequeue(name) ? state.shared !== undefined : state.unreserve(name)',
        'state.dequeue(name) ? state.shared !== undefined : state.unreserve(name) && state.shared !== undefined',
      ],
    ],
  },
  {
    defect: 'a forced release leaves the room to nobody',
    scope: 'seat',
    edits: [[TABLE, '    state.free();\n    this.#handOver(key);\n    for', '    state.free();\n    for']],
  },
  {
    defect: 'a permit comes in while readers are in',
    scope: 'kinds',
    changes: { wants: ['write', 'read', 2] },
    edits: [
      [TABLE, 'if (otherKind) {', 'if (false) {'],
      [SHARED, 'if (kindOfKey(other) !== kindOfKey(shares)) {', 'if (false) {'],
    ],
  },
  {
    defect: 'a ticket of a reader lets a hold in after its own release',
    scope: 'passes',
    changes: { processes: 2, wants: ['read', 'read'], kinds: ['late', 'doubled'] },
    edits: [[TABLE, '!state?.shared?.isOf(hold) || this.#done.get(hold.id) !== undefined', '!state?.shared?.isOf(hold)']],
  },
  {
    defect: 'a ticket of a reader does not name its owner',
    scope: 'passes',
    edits: [
      [SHARED, 'fence === this.#fence && [...this.#holds.values()].some((hold) => hold.owner === owner)', 'owner !== "" && fence > 0'],
    ],
  },
];
