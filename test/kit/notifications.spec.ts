import { Listeners } from '../../lib/kit/listeners';
import { RECHECK_MS } from '../../lib/kit/protocol';
import { Rechecks } from '../../lib/kit/rechecks';

const { soon, late } = RECHECK_MS;

describe('a place asks again', () => {
  let rechecks: Rechecks;
  let distrusted: number;
  const subscription = { acknowledged: true, distrust: (): void => void distrusted++ };
  const place = { name: 'a' };

  beforeEach(() => {
    [rechecks, distrusted] = [new Rechecks(), 0];
  });

  test('soon among the first two of a queue, and late behind them', () => {
    const msAt = [0, 1, 2, 3].map((rank) => rechecks.recheckMs({ name: `${rank}` }, rank, true, subscription));
    expect(msAt).toEqual([soon, soon, late, late]);
  });

  test('soon at any rank while its process may not be notified', () => {
    expect(rechecks.recheckMs(place, 5, true, { ...subscription, acknowledged: false })).toBe(soon);
    expect(rechecks.recheckMs(place, 5, false, undefined)).toBe(soon);
    expect(rechecks.recheckMs(place, 5, false, subscription)).toBe(late);
  });

  test('soon from then on where the queue had lost it without a message, and its connection is no longer trusted', () => {
    rechecks.recheckMs(place, 5, true, subscription);
    expect(distrusted).toBe(0);
    expect(rechecks.recheckMs(place, 5, true, subscription)).toBe(soon);
    expect(distrusted).toBe(1);
    expect(rechecks.recheckMs(place, 5, false, subscription)).toBe(soon);
    expect(rechecks.recheckMs(place, 4, false, subscription)).toBe(soon);
    expect(distrusted).toBe(1);
    expect(rechecks.recheckMs({ name: 'other' }, 5, true, subscription)).toBe(late);
  });

  test('late where it is in the queue as before', () => {
    rechecks.recheckMs(place, 5, true, subscription);
    expect(rechecks.recheckMs(place, 4, false, subscription)).toBe(late);
    expect(distrusted).toBe(0);
  });

  test('soon where it was lost and there is no connection', () => {
    rechecks.recheckMs(place, 5, true, undefined);
    expect(rechecks.recheckMs(place, 5, true, undefined)).toBe(soon);
    expect(rechecks.recheckMs(place, 5, false, subscription)).toBe(soon);
  });

  test('late where it joins anew after a grant: it was not lost', () => {
    rechecks.recheckMs(place, 5, true, subscription);
    rechecks.forget(place);
    expect(rechecks.recheckMs(place, 5, true, subscription)).toBe(late);
    expect(distrusted).toBe(0);
  });
});

describe('those who listen', () => {
  let listeners: Listeners;
  let heard: unknown[][];

  const listen = (until?: AbortSignal, who = 'first'): void => {
    const turn = (key: string, name: string): void => void heard.push([who, 'turn', key, name]);
    listeners.onTurn({ turn, recheck: () => heard.push([who, 'recheck']) }, until);
    listeners.onForced((key, fence) => heard.push([who, 'forced', key, fence]), until);
    listeners.onMessage((text, id) => heard.push([who, 'message', text, id]), until);
  };

  beforeEach(() => {
    [listeners, heard] = [new Listeners(), []];
    listen();
  });

  test.each([
    ['of a turn, with its key and place', 'turn host:1:ab:7 my key', ['turn', 'my key', 'host:1:ab:7']],
    ['of a forced release, with its key and fence', 'forced 1700000000000000 my key', ['forced', 'my key', 1_700_000_000_000_000]],
    ['of a message, with its text and what its sender calls it', 'note id-1 some\ntext', ['message', 'some\ntext', 'id-1']],
    ['of a turn of a key with line breaks', 'turn p a\nb\n', ['turn', 'a\nb\n', 'p']],
  ])('are notified %s', (_, message, expected) => {
    listeners.receive(message);
    expect(heard).toEqual([['first', ...expected]]);
  });

  test('are told keys as they are locked, and texts as they were sent, where messages name the keys otherwise', () => {
    const keyOf = (key: string): string => key.slice('row of '.length);
    listeners.receive('turn p row of k', keyOf);
    listeners.receive('forced 5 row of k', keyOf);
    listeners.receive('note id row of k', keyOf);
    expect(heard).toEqual([
      ['first', 'turn', 'k', 'p'],
      ['first', 'forced', 'k', 5],
      ['first', 'message', 'row of k', 'id'],
    ]);
  });

  test.each(['', 'turn', 'turn p', 'other p k', 'Turn p k', '!turn p k', ' turn p k', 'forced', 'note', '-'])(
    'hear nothing of %j, which another program may have sent',
    (message) => {
      listeners.receive(message);
      expect(heard).toEqual([]);
    },
  );

  test('hear a message without a name by its text alone', () => {
    listeners.message('text');
    expect(heard).toEqual([['first', 'message', 'text', '']]);
  });

  test('ask for all their turns again where messages may have been lost', () => {
    listen(undefined, 'second');
    listeners.recheck();
    expect(heard).toEqual([
      ['first', 'recheck'],
      ['second', 'recheck'],
    ]);
  });

  test('are notified until their signal aborts, and others go on', () => {
    const end = new AbortController();
    listen(end.signal, 'second');
    expect(listeners.turnListeners).toBe(2);
    end.abort();
    expect(listeners.turnListeners).toBe(1);
    listeners.receive('turn p k');
    listeners.receive('forced 5 k');
    listeners.receive('note id text');
    listeners.recheck();
    expect(heard.map(([who, what]) => [who, what])).toEqual(['turn', 'forced', 'message', 'recheck'].map((what) => ['first', what]));
  });

  test('are not notified where their signal had aborted before', () => {
    listen(AbortSignal.abort(), 'second');
    expect(listeners.turnListeners).toBe(1);
    listeners.receive('forced 5 k');
    listeners.receive('note id text');
    expect(heard.map(([who, what]) => [who, what])).toEqual(['forced', 'message'].map((what) => ['first', what]));
  });
});
