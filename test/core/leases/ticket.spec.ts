import { readTicket, readTickets, writeTicket } from '../../../lib/core/leases/ticket';

const ENTRY = { store: 'default', key: 'k', secret: 's', fence: 9, storedFence: 7 };

const textOf = (content: unknown): string => Buffer.from(JSON.stringify(content)).toString('base64url');

test('a ticket is read as it was written, also that of several keys and of another store', () => {
  const others = [ENTRY, { ...ENTRY, key: 'other', store: 'reports', fence: 22, storedFence: 7 }];
  expect(readTickets(writeTicket(others), 1_000)).toEqual(others);
  expect(readTicket(writeTicket(others), 'other')).toEqual(others[1]);
  expect(readTicket(textOf([['k', 's', 7, 2]]), 'k')).toEqual(ENTRY);
});

const MALFORMED = 'Lock "k": the ticket is malformed. Make sure that it is what lock.makeTicket() returned, carried unchanged.';

test.each([
  ['no JSON', Buffer.from('[[').toString('base64url')],
  ['no list', textOf({ length: 1 })],
  ['an empty list', textOf([])],
  ['an entry that is no list', textOf([7])],
  ['a key that is no text', textOf([[7, 's', 7, 0]])],
  ['a secret that is no text', textOf([['k', 7, 7, 0]])],
  ['a fence that is no whole number', textOf([['k', 's', 7.5, 0]])],
  ['a fence that is a text', textOf([['k', 's', '7', 0]])],
  ['a position before the block', textOf([['k', 's', 7, -1]])],
  ['a position beyond the block', textOf([['k', 's', 7, 16]])],
  ['a position that is no whole number', textOf([['k', 's', 7, 0.5]])],
  ['a position that is a text', textOf([['k', 's', 7, '0']])],
  ['no position', textOf([['k', 's', 7]])],
  ['a store that is no text', textOf([['k', 's', 7, 0, 7]])],
  ['white space in its JSON', Buffer.from('[["k","s",7, 0]]').toString('base64url')],
  ['a character more', `${textOf([['k', 's', 7, 0]])}=`],
])('a ticket with %s is malformed, and the error does not repeat it', (_what, text) => {
  expect(() => readTicket(text, 'k')).toThrow(expect.objectContaining({ code: 'LOCK_CONFIGURATION', key: 'k', detail: MALFORMED }));
  expect(() => readTickets(text, 1_000)).toThrow(
    expect.objectContaining({
      detail: 'The text of the tickets is malformed. Make sure that it is what makeTickets() returned, carried unchanged.',
    }),
  );
});

test.each([undefined, null, 7, [], {}])('what is no text, such as %p, is no text of tickets', (text) => {
  expect(() => readTickets(text, 1_000)).toThrow(expect.objectContaining({ detail: expect.stringContaining('malformed') as string }));
});

test('the last place of a block is one', () => {
  expect(readTicket(textOf([['k', 's', 7, 15]]), 'k').fence).toBe(22);
});

test('a ticket of other keys is refused with their names', () => {
  const text = writeTicket([{ ...ENTRY, key: 'a' }, { ...ENTRY, key: 'b' }]); // prettier-ignore
  expect(() => readTicket(text, 'k')).toThrow(
    expect.objectContaining({ key: 'k', detail: 'Lock "k": the ticket is for "a", "b". Pass the ticket of a lock on this key.' }),
  );
});

test('a text of tickets that is longer than its limit is refused, and one of that length is not', () => {
  const text = writeTicket([ENTRY]);
  expect(readTickets(text, text.length)).toEqual([ENTRY]);
  expect(() => readTickets(text, text.length - 1)).toThrow(
    expect.objectContaining({
      detail: expect.stringContaining(`has ${text.length} characters, and the limit is ${text.length - 1}`) as string,
    }),
  );
});
