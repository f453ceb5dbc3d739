import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Controller, Logger, Post, type ArgumentsHost, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import request from 'supertest';
import {
  DistributedLock,
  LockConfigurationError,
  LockExceptionFilter,
  LockModule,
  LockNotAcquiredError,
  LockStoreError,
  RedisLockStore,
} from '../../lib/index';
import type { LockError } from '../../lib/core/words/errors';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import { TroubleLog } from '../../lib/nest/trouble-log';
import { RedisServer } from '../support/redis-server';
import { startTime, stopTime } from '../support/virtual-time';

/** The lines that came to the log, with the stacks. */
let lines: string[];

beforeEach(() => {
  lines = [];
  const keep = (message: unknown, stack?: unknown): void => void lines.push([message, stack].filter(Boolean).join('\n'));
  jest.spyOn(Logger.prototype, 'error').mockImplementation(keep);
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(keep);
  jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
});
afterEach(() => void jest.restoreAllMocks());

@Controller()
class Requests {
  @Post('book')
  @DistributedLock({ key: 'book', wait: 0 })
  async book(): Promise<void> {}
}

test('of a hundred requests that an outage fails, one has a line with its stack', async () => {
  const server = await RedisServer.start();
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new RedisLockStore(server.url) })],
    controllers: [Requests],
  }).compile();
  const app: INestApplication = module.createNestApplication().useGlobalFilters(new LockExceptionFilter());
  await app.listen(0);
  try {
    await request(app.getHttpServer()).post('/book').expect(201);
    await server.kill();
    lines.length = 0;
    for (let sent = 0; sent < 10; sent++) {
      await Promise.all(Array.from({ length: 10 }, () => request(app.getHttpServer()).post('/book').expect(503)));
    }
    const ofRequests = lines.filter((line) => /\n +at /.test(line));
    // A connection that is cut and one that is refused are two kinds.
    expect(ofRequests.length).toBeGreaterThan(0);
    expect(ofRequests.length).toBeLessThan(4);
    expect(lines.length).toBeLessThan(6);
  } finally {
    await app.close();
    await server.stop();
  }
});

describe('in a minute', () => {
  beforeEach(() => startTime({ passes: false }));
  afterEach(stopTime);

  const away = (key: string, code = 'ECONNREFUSED'): LockError =>
    new LockStoreError(`Lock "${key}": Redis did not answer: ${code}.`, key, {
      cause: Object.assign(new Error(code), { code }),
      unknown: true,
    });
  const busy = (key: string): LockError =>
    new LockNotAcquiredError(`Lock "${key}" was not acquired.`, key, { reason: 'busy', waitedMs: 0 });
  const answering = (): ((error: LockError) => void) => {
    const filter = new LockExceptionFilter();
    const response = { header: () => undefined, status: () => ({ send: () => undefined }) };
    const host = { getType: () => 'http', switchToHttp: () => ({ getResponse: () => response }) } as unknown as ArgumentsHost;
    return (refusal) => void filter.catch(refusal, host);
  };
  const heads = (): string[] => lines.splice(0).map((line) => line.split('\n')[0] as string);

  test('the others of a kind are counted, until a minute passes without one; then the next is told whole', () => {
    const answer = answering();
    for (let sent = 0; sent < 100; sent++) {
      answer(away(`order:${sent}`));
    }
    expect(lines).toEqual([expect.stringMatching(/^Lock "order:0": Redis did not answer: ECONNREFUSED\.\n.* +at /s)]);
    lines.length = 0;
    jest.advanceTimersByTime(60_000);
    expect(heads()).toEqual(['99 more in the last minute. The last one: Lock "order:99": Redis did not answer: ECONNREFUSED.']);
    answer(away('order:7'));
    expect(lines).toEqual([]);
    jest.advanceTimersByTime(60_000);
    expect(heads()).toEqual(['1 more in the last minute. The last one: Lock "order:7": Redis did not answer: ECONNREFUSED.']);
    jest.advanceTimersByTime(60_000);
    expect(lines).toEqual([]);
    answer(away('order:8'));
    expect(lines).toEqual([expect.stringMatching(/^Lock "order:8".*\n +at /s)]);
  });

  test('another kind of error, and another busy key, is told at once', () => {
    const answer = answering();
    const errors = [
      away('a'),
      away('a', 'ETIMEDOUT'),
      new LockStoreError('Lock "a": Redis refused the password.', 'a', { cause: new Error('WRONGPASS invalid'), unknown: false }),
      new LockConfigurationError('Lock "a": Redis refused a command.', 'a', { cause: new Error('NOPERM evalsha') }),
      busy('a'),
      busy('b'),
    ];
    errors.forEach(answer);
    expect(heads()).toEqual(errors.map(({ detail }) => detail));
    errors.forEach(answer);
    expect(heads()).toEqual([]);
  });

  test('no more than a hundred kinds are told apart', () => {
    const answer = answering();
    for (let key = 0; key < 1_000; key++) {
      answer(busy(`order:${key}`));
    }
    expect(heads()).toHaveLength(101);
    jest.advanceTimersByTime(60_000);
    expect(heads()).toEqual(['899 more in the last minute, of several kinds. The last one: Lock "order:999" was not acquired.']);
  });

  test('a line that counts is of no request', () => {
    const answer = answering();
    const requests = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => void contexts.push(requests.getStore()));
    requests.run('first', () => [away('a'), away('a')].forEach(answer));
    jest.advanceTimersByTime(60_000);
    expect(contexts).toEqual([undefined]);
  });

  test.each(['releaseFailed', 'unreleased'] as const)('%s of one key is told once, and then counted', (type) => {
    const trouble = { type, store: 'default', key: 'job', by: 'vm (pid 1)', heldMs: 7, error: away('job') } as unknown as LockTrouble;
    const log = new TroubleLog();
    for (let call = 0; call < 10; call++) {
      log.write(trouble);
    }
    expect(heads()).toEqual([expect.stringContaining('Lock "job" of vm (pid 1) was n')]);
    jest.advanceTimersByTime(60_000);
    expect(heads()).toEqual([expect.stringMatching(/^9 more in the last minute\. The last one: Lock "job"/)]);
  });

  test('countsDiffer names both calls, both counts, and what to do', () => {
    const holder = { by: 'vm-2 (pid 7) Erp.old', heldMs: 3 };
    const subject = { store: 'default', key: 'erp:7', name: 'erp:<tenant>', by: 'vm-1 (pid 1) Erp.sync' };
    new TroubleLog().write({ type: 'countsDiffer', ...subject, permits: 50, holder, holderPermits: 20 } as unknown as LockTrouble);
    expect(heads()).toEqual([
      'Semaphore "erp:7" has 50 permits for vm-1 (pid 1) Erp.sync, and 20 for vm-2 (pid 7) Erp.old: the smallest count of those inside ' +
        "holds for all. Unless a deploy is changing the count, give both the same. This is said once for each name ('erp:<tenant>') and " +
        'pair of counts.',
    ]);
  });

  const TYPES = ['lost', 'forced', 'endedLate', 'heldLong', 'unreleased', 'releaseFailed', 'countsDiffer', 'storeUnavailable', 'leader'];
  test.each(TYPES)('a line of %s names the store, where it has a name', (type) => {
    const about = {
      type,
      key: 'job',
      by: 'vm (pid 1)',
      holder: { by: 'vm (pid 2)' },
      forcedBy: {},
      change: 'stillRuns',
      reason: 'expired',
      error: away('job'),
    };
    const log = new TroubleLog();
    log.write({ ...about, store: 'ledger' } as unknown as LockTrouble);
    expect(heads()).toEqual([expect.stringContaining("store 'ledger'")]);
    log.write({ ...about, store: 'default', key: 'other' } as unknown as LockTrouble);
    expect(heads()).toEqual([expect.not.stringContaining('in the store')]);
  });

  test('two applications of one process are told each', () => {
    const trouble = { type: 'releaseFailed', store: 'default', key: 'job', by: 'vm (pid 1)', error: away('job') } as unknown as LockTrouble;
    for (const log of [new TroubleLog(), new TroubleLog()]) {
      log.write(trouble);
    }
    expect(heads()).toHaveLength(2);
  });
});
