import type { Snapshot, SnapshotChanges } from '../../snapshot.js';

/**
 * Stands for a field that is missing, or of another kind: in a rolling deploy the server may be older than this script,
 * or newer.
 */
const UNKNOWN = 'not said';
const ROW = {
  id: '',
  key: '',
  name: '',
  site: '',
  process: '',
  host: UNKNOWN,
  outcome: UNKNOWN,
  type: UNKNOWN,
  agoMs: 0,
  count: 1,
  holds: [],
};
const HEALTH = { status: UNKNOWN, reasons: [], reachable: true };
const LISTS = ['processes', 'held', 'waiting', 'ended', 'incidents', 'orphans'];
const STORE = { silent: [], leftOut: 0 };
const CHANGES = { gone: [], renewed: [], added: [] };

type Given = Readonly<Record<string, unknown>>;

/** A survey, or its changes, with all that has to be there. */
export function completed<Message extends Snapshot | SnapshotChanges>(message: Message): Message {
  const stores = rows(message.stores).map((store) => {
    const lists = LISTS.map((name) => [name, isObject(store[name]) ? changed(store[name]) : rows(store[name]).map(completedRow)]);
    return whole(STORE, { ...store, ...Object.fromEntries(lists) });
  });
  return { ...message, stores };
}

function changed(changes: Given): Given {
  const all = whole(CHANGES, changes);
  return { ...all, added: rows(all.added).map(completedRow) };
}

function completedRow(given: Given): Given {
  const row = whole(ROW, given);
  const { health } = row as Given;
  return isObject(health) ? { ...row, health: whole(HEALTH, health) } : row;
}

function whole<Defaults extends Given>(defaults: Defaults, given: Given): Defaults {
  const found: Record<string, unknown> = { ...given };
  for (const name in defaults) {
    if (kindOf(found[name]) !== kindOf(defaults[name])) {
      found[name] = defaults[name];
    }
  }
  return found as Defaults;
}

function rows(given: unknown): Given[] {
  return Array.isArray(given) ? given.filter(isObject) : [];
}

function isObject(given: unknown): given is Given {
  return kindOf(given) === '[object Object]';
}

function kindOf(given: unknown): string {
  return Object.prototype.toString.call(given);
}
