import { describe, expect, it } from '@jest/globals';
import { openDatabase } from '../src/database/open-database.js';
import { describeLockPlace } from '../src/lock-place.js';
import { makeLockStore } from '../src/lock-store.js';
import { Settings } from '../src/settings.js';
import { StartUpError } from '../src/start-up.error.js';
import { welcome } from '../src/welcome.js';

describe('the settings', () => {
  it('without an environment everything is embedded, on port 3000', () => {
    expect(new Settings({ LOCK_STORE: '', REDIS_URL: '', PORT: '', OTEL: '' })).toEqual({
      port: 3000,
      databaseUrl: undefined,
      operatorToken: expect.stringMatching(/^[\w-]{12}$/),
      isTokenSet: false,
      locks: { store: 'memory' },
      lockWait: '5s',
      traces: undefined,
    });
  });

  it.each(['abc', '-1', '65536', '3000x', '1.5'])('PORT=%s stops the start with a message that says what to set', (PORT) => {
    expect(() => new Settings({ PORT })).toThrow(
      new StartUpError(`PORT is "${PORT}". Set it to a number from 0 to 65535 (0: any free port), or leave it out for 3000.`),
    );
  });

  it.each(['jaeger', 'CONSOLE', 'true'])('OTEL=%s stops the start with a message that says what to set', (OTEL) => {
    expect(new Settings({ OTEL: 'console' }).traces).toBe('console');
    expect(() => new Settings({ OTEL })).toThrow(
      new StartUpError(`OTEL is "${OTEL}". Set it to console for traces on the console, or leave it out for none.`),
    );
  });

  it('a URL of another kind stops the start with a message that does not repeat its password', () => {
    expect(() => new Settings({ REDIS_URL: 'http://:secret@localhost' })).toThrow(
      new StartUpError('REDIS_URL is no URL that starts with redis:// or rediss://.'),
    );
    expect(() => new Settings({ DATABASE_URL: 'localhost:5432' })).toThrow(
      new StartUpError('DATABASE_URL is no URL that starts with postgres:// or postgresql://.'),
    );
  });

  it('a database that does not answer stops the start with one line without its password', async () => {
    const settings = new Settings({ DATABASE_URL: 'postgres://user:secret@127.0.0.1:1/bank' });
    await expect(openDatabase(settings)).rejects.toEqual(
      expect.objectContaining({
        message:
          'PostgreSQL at 127.0.0.1:1, database bank: connect ECONNREFUSED 127.0.0.1:1. Check DATABASE_URL, or leave it out for an embedded database.',
      }),
    );
  });

  it('locks in a database that does not answer stop the start with one line without its password', async () => {
    const opening = makeLockStore({ store: 'postgres', url: 'postgres://user:secret@127.0.0.1:1/bank' });
    await expect(opening).rejects.toThrow(StartUpError);
    await expect(opening).rejects.toThrow(
      /^Locks in PostgreSQL at 127\.0\.0\.1:1, database bank: (?!.*secret).*ECONNREFUSED.* Check DATABASE_URL\.$/,
    );
  });

  it('the welcome says where balances and locks are, and warns of locks that other processes do not see', () => {
    const settings = new Settings({ DATABASE_URL: 'postgres://user:secret@db/bank' });
    const text = welcome('http://localhost:3000', settings, 'PostgreSQL at db, database bank');
    expect(text).toContain('Balances: PostgreSQL at db, database bank.');
    expect(text).toContain('Locks:    the memory of this process (set LOCK_STORE to lock across processes).');
    expect(text).toContain('Take care: a second process on this database would not be locked out. Set LOCK_STORE=postgres for both.');
    expect(welcome('http://localhost:3000', new Settings({ REDIS_URL: 'redis://:secret@cache:6379' }), 'PGlite')).toContain(
      'Locks:    Redis at cache:6379.',
    );
  });

  it('the welcome shows a password that was made for this start, and none that was set', () => {
    const made = new Settings({});
    expect(welcome('http://localhost:3000', made, 'PGlite')).toContain(`password ${made.operatorToken})`);
    const text = welcome('http://localhost:3000', new Settings({ OPERATOR_TOKEN: 'secret' }), 'PGlite');
    expect(text).toContain('password from OPERATOR_TOKEN)');
    expect(text).not.toContain('secret');
  });

  it.each([
    [{ REDIS_URL: 'redis://cache' }, { store: 'redis', url: 'redis://cache' }, 'Redis at cache'],
    [
      { REDIS_URL: 'redis://cache', REDIS_CLIENT: 'node-redis' },
      { store: 'redis', url: 'redis://cache', client: 'node-redis' },
      'Redis at cache',
    ],
    [{ LOCK_STORE: 'memory', REDIS_URL: 'redis://cache' }, { store: 'memory' }, 'the memory of this process'],
    [{ LOCK_STORE: 'redis', REDIS_URL: 'redis://:secret@cache:1' }, { store: 'redis', url: 'redis://:secret@cache:1' }, 'Redis at cache:1'],
    [
      { LOCK_STORE: 'quorum', REDIS_URLS: 'redis://:secret@a, redis://b,rediss://c:7' },
      { store: 'quorum', urls: ['redis://:secret@a', 'redis://b', 'rediss://c:7'] },
      'a quorum of 3 Redis servers: a, b, c:7',
    ],
    [
      { LOCK_STORE: 'postgres', REDIS_URL: 'redis://cache', DATABASE_URL: 'postgres://user:secret@db/bank' },
      { store: 'postgres', url: 'postgres://user:secret@db/bank' },
      'PostgreSQL at db, database bank',
    ],
    [
      { LOCK_STORE: 'mysql', MYSQL_URL: 'mysql://user:secret@db:3306/bank' },
      { store: 'mysql', url: 'mysql://user:secret@db:3306/bank' },
      'MySQL at db:3306, database bank',
    ],
  ])('%j puts locks into %j', (environment, locks, description) => {
    const settings = new Settings(environment);
    expect(settings.locks).toEqual(locks);
    expect(describeLockPlace(settings.locks)).toBe(description);
  });

  const SERVERS = 'redis://a:6379,redis://b:6379,redis://c:6379';
  it.each([
    [{ LOCK_STORE: 'etcd' }, 'LOCK_STORE is "etcd". Set it to memory, redis, quorum, postgres, mysql, or leave it out.'],
    [{ REDIS_URL: 'redis://cache', REDIS_CLIENT: 'glide' }, 'REDIS_CLIENT is "glide". Set it to ioredis or node-redis, or leave it out.'],
    [{ LOCK_STORE: 'toString' }, 'LOCK_STORE is "toString". Set it to memory, redis, quorum, postgres, mysql, or leave it out.'],
    [
      { LOCK_STORE: 'redis' },
      'LOCK_STORE is "redis", but REDIS_URL is not set. Set it to redis://host:6379, or LOCK_STORE to another store.',
    ],
    [
      { LOCK_STORE: 'quorum', REDIS_URL: 'redis://a' },
      `LOCK_STORE is "quorum", but REDIS_URLS is not set. Set it to ${SERVERS}, or LOCK_STORE to another store.`,
    ],
    [
      { LOCK_STORE: 'postgres' },
      'LOCK_STORE is "postgres", but DATABASE_URL is not set. Set it to postgres://user:password@host/database, or LOCK_STORE to another store.',
    ],
    [
      { LOCK_STORE: 'mysql' },
      'LOCK_STORE is "mysql", but MYSQL_URL is not set. Set it to mysql://user:password@host/database, or LOCK_STORE to another store.',
    ],
    [
      { LOCK_STORE: 'quorum', REDIS_URLS: 'redis://a,redis://b' },
      `REDIS_URLS names 2 servers. A quorum takes an odd number, 3 or more: ${SERVERS}.`,
    ],
    [{ LOCK_STORE: 'quorum', REDIS_URLS: 'redis://a' }, `REDIS_URLS names 1 server. A quorum takes an odd number, 3 or more: ${SERVERS}.`],
    [
      { LOCK_STORE: 'quorum', REDIS_URLS: 'redis://a,redis://:secret@b,redis://b' },
      'REDIS_URLS names a server twice. The servers of a quorum must not fail together: name different ones.',
    ],
    [
      { LOCK_STORE: 'quorum', REDIS_URLS: 'redis://a,http://:secret@b,redis://c' },
      'One of REDIS_URLS is no URL that starts with redis:// or rediss://.',
    ],
    [
      { LOCK_STORE: 'quorum', REDIS_URLS: 'redis://a,redis://b,' },
      `REDIS_URLS names 2 servers. A quorum takes an odd number, 3 or more: ${SERVERS}.`,
    ],
  ])('%j stops the start with a message that says what to set', (environment, message) => {
    expect(() => new Settings(environment)).toThrow(new StartUpError(message));
  });
});
