import { describe, expect, it } from '@jest/globals';
import { openDatabase } from '../src/database/open-database.js';
import { Settings } from '../src/settings.js';
import { StartUpError } from '../src/start-up.error.js';
import { welcome } from '../src/welcome.js';

describe('the settings', () => {
  it('without an environment everything is embedded, on port 3000', () => {
    expect(new Settings({ REDIS_URL: '', PORT: '' })).toEqual({
      port: 3000,
      databaseUrl: undefined,
      redisUrl: undefined,
      lockWait: '5s',
    });
  });

  it.each(['abc', '-1', '65536', '3000x', '1.5'])('PORT=%s stops the start with a message that says what to set', (PORT) => {
    expect(() => new Settings({ PORT })).toThrow(
      new StartUpError(`PORT is "${PORT}". Set it to a number from 0 to 65535 (0: any free port), or leave it out for 3000.`),
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

  it('the welcome says where balances and locks are, and warns of locks that other processes do not see', () => {
    const settings = new Settings({ DATABASE_URL: 'postgres://user:secret@db/bank' });
    const text = welcome('http://localhost:3000', settings, 'PostgreSQL at db, database bank');
    expect(text).toContain('Balances: PostgreSQL at db, database bank.');
    expect(text).toContain('Locks:    in the memory of this process');
    expect(text).toContain('Take care: a second process');
    expect(welcome('http://localhost:3000', new Settings({ REDIS_URL: 'redis://:secret@cache:6379' }), 'PGlite')).toContain(
      'Locks:    Redis at cache:6379.',
    );
  });
});
