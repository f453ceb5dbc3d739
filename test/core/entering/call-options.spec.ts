import { jest } from '@jest/globals';
import { Registry } from 'prom-client';
import { LockConfigurationError } from '../../../lib/core/words/errors';
import { prometheusTelemetry } from '../../../lib/operate/prometheus/index';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import type { LockService } from '../../../lib/nest/lock.service';
import { makeLocks } from '../../support/make-locks';
import { realProcess } from '../../support/watch-rejections';

let locks: LockService;

beforeEach(() => {
  locks = makeLocks(new MemoryLockStore());
});

/** An option as JavaScript passes it, and the call that gets it. */
const callWith = (options: object): Promise<unknown> => locks.withLock('k', options, () => 'ran');

async function refusalOf(options: object): Promise<string> {
  const error: unknown = await callWith(options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LockConfigurationError);
  return (error as Error).message;
}

test.each([
  ['', /name is ''\. Pass a text/],
  [7, /name is 7\. Pass a text/],
  [null, /name is null\. Pass a text/],
  [{}, /name is an object of class Object\. Pass a text/],
  [Object.create(null), /name is an object of class null\. Pass a text/],
])('the name %p is refused', async (name, message) => {
  expect(await refusalOf({ name })).toMatch(message);
});

test('each option of a call is taken, also where it is undefined', async () => {
  const { signal } = new AbortController();
  const all = { ttl: '1s', wait: 0, signal, renew: false, maxHold: 500, minHold: 0, onUnavailable: 'throw', reentry: 'never' };
  expect(await callWith({ ...all, by: 'Stock.count', name: 'stock' })).toBe('ran');
  expect(await callWith(Object.fromEntries([...Object.keys(all), 'by', 'name', 'ticket'].map((name) => [name, undefined])))).toBe('ran');
});

test('one signal may end any number of waits, and Node warns of no leak', async () => {
  const heard = jest.spyOn(realProcess, 'emitWarning').mockReturnValue();
  const held = await locks.acquire('k');
  const giveUp = new AbortController();
  const waits = Array.from({ length: 30 }, () => locks.withLock('k', { signal: giveUp.signal, reentry: 'never' }, () => 'ran'));
  await Promise.resolve();
  giveUp.abort();
  expect((await Promise.allSettled(waits)).map(({ status }) => status)).toEqual(waits.map(() => 'rejected'));
  await held.release();
  expect(heard).not.toHaveBeenCalled();
});

describe('a duration', () => {
  test('may be a text of 100 characters', async () => {
    expect(await callWith({ ttl: `${'0'.repeat(98)}5s` })).toBe('ran');
  });

  test('that is no duration is repeated, unless it is longer', async () => {
    expect(await refusalOf({ ttl: 'x'.repeat(100) })).toContain(`ttl is '${'x'.repeat(100)}', which is not a duration`);
    const longer = await refusalOf({ ttl: `${'0'.repeat(99)}5s` });
    expect(longer).toMatch(/ttl is a string of 101 characters, which is not a duration/);
    expect(longer).not.toContain('000');
  });

  test.each([[null], [''], [true], [{}], [5n]])('is not %p', async (ttl) => {
    expect(await refusalOf({ ttl })).toMatch(/ttl is .*, which is not a duration/);
  });
});

describe('an option that is mistyped', () => {
  test.each([
    ['minHol', 'minHold'],
    ['maxHol', 'maxHold'],
    ['WAIT', 'wait'],
    ['timeout', 'wait'],
    ['retries', 'wait'],
    ['retryCount', 'wait'],
    ['duration', 'ttl'],
    ['expire', 'ttl'],
  ])('%s is most likely %s', async (option, meant) => {
    expect(await refusalOf({ [option]: 5 })).toMatch(`there is no option '${option}'. Did you mean '${meant}'?`);
  });

  test('is not taken for one of other places', () => {
    const make = (): unknown => new MemoryLockStore({ timeout: 5 } as never);
    expect(make).toThrow("MemoryLockStore: there is no option 'timeout'. The options are: expires.");
  });
});

describe('an object that needs methods', () => {
  const registerMetric = (): void => undefined;
  const register = (given: unknown) => (): unknown => prometheusTelemetry({ register: given as Registry });

  test.each([
    ['null', null],
    ['a text', 'registry'],
    ['what has one of them only', { registerMetric }],
    ['a function with them', Object.assign(() => undefined, { registerMetric, getSingleMetric: registerMetric })],
  ])('is not %s', (_, given) => {
    expect(register(given)).toThrow(LockConfigurationError);
    expect(register(given)).toThrow(/register is .*\. Pass a Registry of prom-client, or leave it out/);
  });

  test('may be left out', () => {
    expect(register(new Registry())).not.toThrow();
    expect(register(undefined)).not.toThrow();
  });
});
