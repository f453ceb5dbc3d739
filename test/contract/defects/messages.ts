import { mapFound, mapOperator, mapShown, type Defect, type Parts } from './defect';

function mapSent(
  store: Parts,
  map: (text: string, process: string | undefined) => [string, string | undefined] | undefined,
): Partial<Parts> {
  return {
    messages: {
      ...store.messages,
      send: async (text, process) => {
        const sent = map(text, process);
        await (sent && store.messages.send(...sent));
      },
    },
  };
}

/** Defects of a store that the rules of these groups notice. */
export const DEFECTS_OF_MESSAGES: Readonly<Record<string, Defect>> = {
  'delivers nothing to a process': {
    rule: 'a message arrives at the process',
    change: (store) => mapSent(store, (text, process) => (process === undefined ? [text, process] : undefined)),
  },
  'delivers nothing to all': {
    rule: 'a message without a process',
    change: (store) => mapSent(store, (text, process) => (process === undefined ? undefined : [text, process])),
  },
  'cuts long messages': {
    rule: 'a long message arrives whole',
    change: (store) => mapSent(store, (text, process) => [text.slice(0, 8_000), process]),
  },
  'fails where nobody hears': {
    rule: 'a message to a process that is not there',
    change: (store) =>
      mapSent(store, (text, process) => {
        if (process !== store.messages.process) {
          throw new Error('nobody is there');
        }
        return [text, process];
      }),
  },
  'does not show the processes': {
    rule: 'inspect shows the processes',
    change: (store) => mapShown(store, (lock) => ({ ...lock, processes: [] })),
  },
  'finds locks of any key': {
    rule: 'a search finds the locks that are held and',
    change: (store) => mapOperator(store, { search: () => store.operator.search('') }),
  },
  'shows other figures in a search': {
    rule: 'a search shows of a lock',
    change: (store) => mapFound(store, (lock) => ({ ...lock, holds: lock.holds + 1 })),
  },
  'shows another start in a search': {
    rule: 'a search shows of a lock',
    change: (store) => mapFound(store, (lock) => ({ ...lock, since: new Date(lock.since.getTime() - 2_000) })),
  },
  'finds what is free': {
    rule: 'a search finds no lock that is free',
    change: (store) => remembering(store),
  },
  'finds what has expired': {
    rule: 'a search finds no lock whose lease has ended',
    change: (store) => remembering(store),
  },
};

/** Finds whatever was held once. */
function remembering(store: Parts): Partial<Parts> {
  const keys = new Set<string>();
  return {
    acquire: (hold, place) => {
      keys.add(hold.key);
      return store.acquire(hold, place);
    },
    ...mapOperator(store, {
      async *search(prefix) {
        const lock = { fence: 1, holds: 1, remainingMs: 1, since: new Date(), by: '', waiters: [] };
        yield [...keys].filter((key) => key.startsWith(prefix)).map((key) => ({ ...lock, key }));
      },
    }),
  };
}
