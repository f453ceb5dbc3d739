import {
  isLockError,
  LockConfigurationError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockStoreError,
} from '../../../lib/core/words/errors';

const DETAIL = 'Lock "k" of host-3: what happened.';
const CAUSE = new Error('connection refused');

const ERRORS: Readonly<Record<string, [make: () => LockError, status: number, code: string, text: string]>> = {
  LockNotAcquiredError: [
    () => new LockNotAcquiredError(DETAIL, 'k', { reason: 'busy', waitedMs: 5, retryAfterMs: 7 }),
    423,
    'LOCK_NOT_ACQUIRED',
    'Locked',
  ],
  LockLostError: [() => new LockLostError(DETAIL, 'k', 'forced'), 500, 'LOCK_LOST', 'Internal Server Error'],
  LockKeyError: [() => new LockKeyError(DETAIL, 'k'), 500, 'LOCK_KEY', 'Internal Server Error'],
  LockStoreError: [() => new LockStoreError(DETAIL, 'k', { cause: CAUSE, unknown: true }), 503, 'LOCK_STORE', 'Service Unavailable'],
  LockConfigurationError: [() => new LockConfigurationError(DETAIL, 'k'), 500, 'LOCK_CONFIGURATION', 'Internal Server Error'],
};

describe.each(Object.entries(ERRORS))('%s', (name, [make, status, code, text]) => {
  let error: LockError;

  beforeEach(() => {
    error = make();
  });

  test('has the same name, status and code for every framework', () => {
    expect(error.name).toBe(name);
    expect(error.code).toBe(code);
    expect([error.status, error.statusCode]).toEqual([status, status]);
    // As http-errors have it: what frameworks built on it would show to clients.
    expect(error.expose).toBe(false);
    expect(isLockError(error)).toBe(true);
  });

  test('is for clients its status, its code and when to try again, in JSON and in GraphQL', () => {
    const retry = name === 'LockNotAcquiredError' ? { retryAfterMs: 7 } : {};
    expect(JSON.parse(JSON.stringify(error))).toEqual({ statusCode: status, message: text, code, ...retry });
    expect(error.extensions).toEqual({ statusCode: status, code, ...retry });
  });

  test('has its detail for tools that copy all properties of its JSON, as vitest does, but for nobody else', () => {
    const body = error.toJSON();
    expect(Object.getOwnPropertyNames(body).map((key) => body[key as keyof typeof body])).toContain(DETAIL);
    for (const copy of [body, { ...body }, structuredClone(body), error.extensions, Object.assign({}, body)]) {
      expect(JSON.stringify(copy)).not.toContain('host-3');
      expect(Object.values(copy)).not.toContain(DETAIL);
    }
  });

  test('says in its message what happened, without the key and the host, and in its stack everything', () => {
    expect(error.message).toMatch(/^[A-Z].{20,}\.$/);
    expect(error.message).not.toMatch(/host-3|"k"|refused/);
    expect(error.key).toBe('k');
    expect(error.stack?.startsWith(`${name}: ${DETAIL}\n    at `)).toBe(true);
  });
});

test('a lost lock says why in its message', () => {
  expect(new LockLostError(DETAIL, 'k', 'maxHold').message).toContain('(maxHold)');
});

test('wrong options are told in the message, unless it would name a key or repeat a driver', () => {
  expect(new LockConfigurationError('LockModule: ttl is 0.').message).toBe('LockModule: ttl is 0.');
  for (const error of [new LockConfigurationError(DETAIL, 'k'), new LockConfigurationError(DETAIL, '', { cause: CAUSE })]) {
    expect(error.message).toMatch(/^[A-Z].{20,}\.$/);
    expect(error.message).not.toContain('host-3');
    expect(error.detail).toBe(DETAIL);
  }
});

test('an error about no key has an empty one, and an unknown status a text too', () => {
  class OtherError extends LockError {
    override readonly name = 'OtherError';
    readonly code = 'LOCK_STORE';
    readonly status = 599;
  }
  for (const error of [new OtherError('message', DETAIL), new LockKeyError(DETAIL), new LockConfigurationError(DETAIL)]) {
    expect(error.key).toBe('');
  }
  expect(new OtherError('message', DETAIL).toJSON().message).toBe('Error');
});

test.each([[null], [undefined], ['LockError'], [{}], [new Error('LockError')]])('%p is no error of a lock', (other) => {
  expect(isLockError(other)).toBe(false);
});

describe('the stack of an error', () => {
  test('is a field like that of any error, before and after somebody has read it', () => {
    for (const isRead of [false, true]) {
      const error = new LockKeyError(DETAIL);
      expect(isRead ? error.stack : DETAIL).toContain(DETAIL);
      error.stack = 'of a tool';
      expect(error.stack).toBe('of a tool');
      error.stack = 'of another';
      expect(error.stack).toBe('of another');
      Object.defineProperty(error, 'stack', { get: () => 'defined' });
      expect(error.stack).toBe('defined');
    }
  });

  test.each([0, undefined])('is the text alone where Node keeps %p frames', (limit) => {
    const { stackTraceLimit } = Error;
    try {
      Error.stackTraceLimit = limit as number;
      expect(new LockKeyError(DETAIL).stack).toBe(`LockKeyError: ${DETAIL}`);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  });
});
