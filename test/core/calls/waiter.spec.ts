import { getEventListeners } from 'node:events';
import { playTime } from '../../support/virtual-time';
import { Waiter } from '../../../lib/core/calls/waiter';

playTime();

let ended: Waiter[];

const waiterOf = (limitMs: number, signal?: AbortSignal): Waiter => new Waiter(limitMs, signal, (waiter) => ended.push(waiter));

beforeEach(() => {
  ended = [];
});

test('a wait ends as aborted where its signal aborts', async () => {
  const aborter = new AbortController();
  const waiter = waiterOf(60_000, aborter.signal);
  aborter.abort();
  expect(await waiter.outcome).toBe('aborted');
  expect(ended).toEqual([waiter]);
});

const ENDS: Readonly<Record<string, [limitMs: number, end: (waiter: Waiter) => void]>> = {
  admission: [60_000, (waiter) => waiter.admit()],
  'its time limit': [100, () => undefined],
  shutdown: [60_000, (waiter) => waiter.end('shutdown')],
  'a refusal': [60_000, (waiter) => waiter.refuse(new Error('refused'))],
};

test.each(Object.entries(ENDS))('a wait that %s ended leaves nothing on its signal, which may be that of many calls', async (_, given) => {
  const [limitMs, end] = given;
  const { signal } = new AbortController();
  const waiter = waiterOf(limitMs, signal);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  end(waiter);
  await waiter.outcome.catch(() => undefined);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  expect(ended).toEqual([waiter]);
});
