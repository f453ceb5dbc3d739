import { LockConfigurationError, LockNotAcquiredError, LockStoreError } from '../../lib/core/words/errors';
import { withRowLock, type RowLockClient } from '../../lib/mysql/index';
import { saying } from '../support/saying';

const never = (): never => {
  throw new Error('The body ran.');
};

/** The error of the call where the connection throws `error`. */
function failingWith(error: unknown): Promise<unknown> {
  const client: RowLockClient = {
    query: async () => {
      throw error;
    },
  };
  return withRowLock(client, 'k', never).catch((thrown: unknown) => thrown);
}

function serverError(errno: number): Error {
  return Object.assign(new Error('of the server'), { errno, code: `ER_${errno}` });
}

// MariaDB has no 3572, and the servers of the tests are not all in the states that give rise to the others.
test.each([
  [1205, 'busy'],
  [3572, 'busy'],
  [1213, 'cycle'],
] as const)('the server error %d is a lock that was not acquired: %s', async (errno, reason) => {
  const thrown = await failingWith(serverError(errno));
  expect(thrown).toBeInstanceOf(LockNotAcquiredError);
  expect(thrown).toMatchObject({ reason, cause: { errno } });
});

test.each([
  [1020, 'has read something before the lock'],
  [1044, 'lacks a right'],
  [1142, 'lacks a right'],
  [1143, 'lacks a right'],
  [1046, 'has no database'],
  [1054, 'is not ours'],
  [1146, 'Run what rowLockSql() returns.'],
  [1290, 'read-only'],
  [1305, 'not inside a transaction'],
  [1792, 'read-only'],
  [1836, 'read-only'],
])('the server error %d is a wrong use that %p describes', async (errno, text) => {
  const thrown = await failingWith(serverError(errno));
  expect(thrown).toBeInstanceOf(LockConfigurationError);
  expect(thrown).toEqual(saying(text));
});

test('any other error of the server is one of the store, and the server did not carry out the statement', async () => {
  const thrown = await failingWith(serverError(1114));
  expect(thrown).toBeInstanceOf(LockStoreError);
  expect(thrown).toMatchObject({ unknown: false });
});

test.each([{ errno: -32, code: 'EPIPE' }, { errno: 32, code: 'EPIPE' }, { code: 'PROTOCOL_CONNECTION_LOST' }])(
  'an error of the network, %p, is one of the store, and its outcome is unknown',
  async (fields) => {
    const thrown = await failingWith(Object.assign(new Error('broken'), fields));
    expect(thrown).toBeInstanceOf(LockStoreError);
    expect(thrown).toMatchObject({ unknown: true, cause: { code: fields.code } });
  },
);

test.each(['driverError', 'cause'])('the error of the server is found in %s of an error of a library', async (place) => {
  const thrown = await failingWith(Object.assign(new Error('of a library'), { [place]: serverError(3572) }));
  expect(thrown).toMatchObject({ reason: 'busy', cause: { message: 'of the server', errno: 3572 } });
});

test('where the lock wait cannot be set back either, the first error passes', async () => {
  const client: RowLockClient = {
    query: async (text) => {
      if (text.startsWith('INSERT')) {
        throw serverError(1213);
      }
      if (text.endsWith('= 50')) {
        throw serverError(1114);
      }
      return [[{ seconds: 50 }]];
    },
  };
  await expect(withRowLock(client, 'k', never)).rejects.toMatchObject({ reason: 'cycle' });
});
