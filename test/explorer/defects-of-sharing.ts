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
      {
        file: TABLE,
        from: 'return (isNext && state.hasRoomFor(shares)) || (place !== undefined && state.isReservedFor(place.name));',
        to: 'return ((shares !== undefined || isNext) && state.hasRoomFor(shares)) || (place !== undefined && state.isReservedFor(place.name));',
      },
    ],
  },
  {
    defect: 'a reader waits for a writer that queued after it',
    scope: 'writers',
    edits: [
      {
        file: TABLE,
        from: '!state.hasRoomFor(sharesOfPlace(first.name))) {',
        to: "!state.hasRoomFor(sharesOfPlace(first.name)) || (first.name.endsWith('R') && [...state.queue.keys()].some((name) => !sharesOfPlace(name)))) {",
      },
    ],
  },
  {
    defect: 'a writer that gave up keeps readers out',
    scope: 'readers',
    edits: [{ file: TABLE, from: 'state.dequeue(name) ? state.shared !== undefined : ', to: '!state.dequeue(name) && ' }],
  },
  {
    defect: 'the last reader hands over to no writer',
    scope: 'readers',
    edits: [
      {
        file: KEY,
        from: `      const was = this.#shared?.remove(hold) === true;
      this.#forgetShared();`,
        to: '      const was = this.#shared?.remove(hold) === true;',
      },
    ],
  },
  {
    defect: 'one is woken where several fit',
    scope: 'readers',
    edits: [
      {
        file: TABLE,
        from: `        state.unreserve(first.name);
        skipped++;
      }`,
        to: `        state.unreserve(first.name);
        skipped++;
      } else {
        return true;
      }`,
      },
    ],
  },
  {
    defect: 'a release of one that leaves others in wakes nobody',
    scope: 'permits',
    edits: [
      {
        file: TABLE,
        from: 'const last = answer && (hold.shares !== undefined || ',
        to: 'const last = answer && ((hold.shares !== undefined && state.shared === undefined) || ',
      },
    ],
  },
  {
    defect: 'a renewal that outlives its release lets its hold in again',
    scope: 'readers',
    edits: [
      {
        file: TABLE,
        from: `const isIn = state?.shared?.fence === hold.fence && state.holds(hold);
`,
        to: `const isIn = state?.shared?.fence === hold.fence;
      if (isIn && !state.holds(hold)) state.grantTo(hold, hold.fence, 0, '', undefined);
`,
      },
    ],
  },
  {
    defect: 'a renewal lengthens the leases of all that share the key',
    scope: 'readers',
    edits: [
      {
        file: SHARED,
        from: '    const hold = this.#holds.get(id);\n    if (hold) {',
        to: '    if (by === "" && !lingering) for (const other of this.#holds.keys()) if (other !== id) this.lengthen({ id: other, ttlMs, by: "x" } as HoldRecord);\n    const hold = this.#holds.get(id);\n    if (hold) {',
      },
    ],
  },
  {
    defect: 'a count outlives its last holder',
    scope: 'counts',
    edits: [
      { file: SHARED, from: '  #fence = 0;\n', to: '  #fence = 0;\n  #most = 1_000;\n' },
      {
        file: SHARED,
        from: '    this.#fence = fence;\n',
        to: "    this.#fence = fence;\n    this.#most = Math.min(this.#most, shares === 'read' ? 1_000 : shares);\n",
      },
      {
        file: SHARED,
        from: "let most = shares === 'read' ? MOST_HOLDS : shares;",
        to: "let most = Math.min(this.#most, shares === 'read' ? MOST_HOLDS : shares);",
      },
      { file: SHARED, from: 'return this.#holds.size === 0 && this.#claims.size === 0;', to: 'return false;' },
    ],
  },
  {
    defect: 'an owner whose permit is over gives one back',
    scope: 'seat',
    edits: [
      {
        file: SHARED,
        from: 'return this.has(hold) && this.#holds.delete(hold.id);',
        to: 'return this.#holds.delete(this.has(hold) ? hold.id : ([...this.#holds.keys()][0] ?? ""));',
      },
    ],
  },
  {
    defect: 'room that is reserved is not taken',
    scope: 'seat',
    edits: [{ file: SHARED, from: 'return this.#holds.size + this.#claims.size < most;', to: 'return this.#holds.size < most;' }],
  },
  {
    defect: 'a reserved place that is claimed is counted twice',
    scope: 'permits',
    edits: [{ file: SHARED, from: '      this.#claims.delete(place.name);\n    }\n    this.#fence', to: '    }\n    this.#fence' }],
  },
  {
    defect: 'only the count of the newcomer decides',
    scope: 'counts',
    edits: [{ file: SHARED, from: "most = other === 'read' ? most : Math.min(most, other);", to: '' }],
  },
  {
    defect: 'only the counts of those that are in decide',
    scope: 'counts',
    edits: [
      {
        file: SHARED,
        from: "let most = shares === 'read' ? MOST_HOLDS : shares;",
        to: "let most = shares === 'read' || this.#holds.size + this.#claims.size > 0 ? MOST_HOLDS : shares;",
      },
    ],
  },
  {
    defect: 'the count of a place that has room reserved does not count',
    scope: 'counts',
    edits: [
      { file: SHARED, from: '      yield sharesOfPlace(name) as Shares;', to: "      yield name.endsWith('R') ? 'read' : MOST_HOLDS;" },
    ],
  },
  {
    defect: 'a lease that runs keeps one in that is over',
    scope: 'permits',
    edits: [
      {
        file: SHARED,
        from: '      if (endsAt <= now) {\n        this.#holds',
        to: '      if ([...this.#holds.values()].every((hold) => hold.endsAt <= now) && endsAt <= now) {\n        this.#holds',
      },
    ],
  },
  {
    defect: 'the fence of a writer is not above those of the readers before it',
    scope: 'readers',
    edits: [
      {
        file: TABLE,
        from: 'this.#fence = fence + hold.fences - 1;',
        to: 'if (hold.shares === undefined) this.#fence = fence + hold.fences - 1;',
      },
    ],
  },
  {
    defect: 'each reader has a fence of its own',
    scope: 'readers',
    edits: [{ file: TABLE, from: 'if (hold.shares !== undefined && state.shared && state.shared.holds.size > 0) {', to: 'if (false) {' }],
  },
  {
    defect: 'a writer whose lease is over renews it beside the readers after it',
    scope: 'writers',
    changes: { processes: 2, wants: ['write', 'read'] },
    edits: [
      {
        file: TABLE,
        from: '    if (!state?.grant || !state.holds(hold) || state.grant.fence',
        to: "    if (state?.shared && !state.grant) state.grantTo(hold, hold.fence, 0, '', undefined);\n    if (!state?.grant || !state.holds(hold) || state.grant.fence",
      },
    ],
  },
  {
    defect: 'readers come in beside a writer that is in',
    scope: 'readers',
    edits: [
      { file: KEY, from: 'if (this.#grant ?? this.#turn) {', to: 'if ((this.#grant ?? this.#turn) && !shares) {' },
      { file: TABLE, from: 'if (!state.grant && (overtakes', to: 'if ((!state.grant || hold.shares) && (overtakes' },
    ],
  },
  {
    defect: 'a writer comes in while a reader is left',
    scope: 'readers',
    edits: [
      {
        file: KEY,
        from: 'return this.#shared === undefined || (shares !== undefined',
        to: 'return (this.#shared?.holds.size ?? 0) < 2 || (shares !== undefined',
      },
    ],
  },
  {
    defect: 'reserved room that nobody claims is never given up',
    scope: 'seat',
    changes: { processes: 2, wants: [1, 1] },
    edits: [{ file: SHARED, from: '        this.#claims.delete(name);\n      }\n    }\n  }', to: '      }\n    }\n  }' }],
  },
  {
    defect: 'reserved room that is given up is not handed over',
    scope: 'seat',
    edits: [
      {
        file: TABLE,
        from: 'state.dequeue(name) ? state.shared !== undefined : state.unreserve(name)',
        to: 'state.dequeue(name) ? state.shared !== undefined : state.unreserve(name) && state.shared !== undefined',
      },
    ],
  },
  {
    defect: 'a forced release leaves the room to nobody',
    scope: 'seat',
    edits: [{ file: TABLE, from: '    state.free();\n    this.#handOver(key);\n    for', to: '    state.free();\n    for' }],
  },
  {
    defect: 'a permit comes in while readers are in',
    scope: 'kinds',
    changes: { wants: ['write', 'read', 2] },
    edits: [
      { file: TABLE, from: 'if (otherKind) {', to: 'if (false) {' },
      { file: SHARED, from: 'if (kindOfKey(other) !== kindOfKey(shares)) {', to: 'if (false) {' },
    ],
  },
  {
    defect: 'a ticket of a reader lets a hold in after its own release',
    scope: 'passes',
    changes: { processes: 2, wants: ['read', 'read'], kinds: ['late', 'doubled'] },
    edits: [{ file: TABLE, from: '!state?.shared?.isOf(hold) || this.#done.get(hold.id) !== undefined', to: '!state?.shared?.isOf(hold)' }],
  },
  {
    defect: 'a ticket of a reader does not name its owner',
    scope: 'passes',
    edits: [
      {
        file: SHARED,
        from: 'fence === this.#fence && [...this.#holds.values()].some((hold) => hold.owner === owner)',
        to: 'owner !== "" && fence > 0',
      },
    ],
  },
];
