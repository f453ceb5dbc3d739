import { PostgresLockStore } from '../../lib/postgres/index';
import { givenBackSuite, type States, type UntidyDatabase } from '../sql/given-back-suite';
import { PostgresServer } from '../support/postgres-server';

const CONNECTIONS = 3;

const STATES: States = {
  'a time zone': { statements: ["SET TimeZone = 'Asia/Kathmandu'"] },
  'other texts of times': { statements: ["SET DateStyle = 'German, DMY'", "SET IntervalStyle = 'sql_standard'"] },
  'few digits': { statements: ['SET extra_float_digits = -15', "SET bytea_output = 'escape'"] },
  'another encoding': { statements: ["SET client_encoding = 'LATIN1'"] },
  'another encoding that has few characters': { statements: ["SET client_encoding = 'WIN1251'"] },
  'functions with names of the server': { statements: ['SET search_path = strange, pg_catalog'] },
  'no search path': { statements: ["SET search_path = ''"] },
  'other texts': { statements: ['SET standard_conforming_strings = off', 'SET backslash_quote = off', 'SET quote_all_identifiers = on'] },
  'NULL as a text': { statements: ['SET array_nulls = off'] },
  'NULL as a value': { statements: ['SET transform_null_equals = on'] },
  'strict functions': { statements: ["SET plpgsql.extra_errors = 'all'", "SET plpgsql.extra_warnings = 'all'"] },
  'no notices': { statements: ['SET client_min_messages = error'] },
  'another plan': {
    statements: ['index', 'indexonly'].map((name) => `SET enable_${name}scan = off`),
  },
  'new plans and little memory': {
    statements: ["SET plan_cache_mode = 'force_custom_plan'", 'SET jit_above_cost = 0', "SET work_mem = '64kB'"],
  },
  'no wait for locks': { statements: ["SET lock_timeout = '1ms'"] },
  'statements of a millisecond': { statements: ["SET statement_timeout = '1ms'"], loses: true },
  'sessions that only read': { statements: ['SET default_transaction_read_only = on'], loses: true, refuses: 'readOnly' },
  'serializable transactions': { statements: ["SET default_transaction_isolation = 'serializable'"] },
  'transactions that can be deferred': { statements: ['SET default_transaction_deferrable = on'] },
  'a transaction': { statements: ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT FROM distributed_lock.lease'] },
  'a transaction that failed': { statements: ['BEGIN', 'SELECT 1 / 0'] },
  'commits that wait for nothing': { statements: ['SET synchronous_commit = off'] },
  'the part of a replica': { statements: ["SET session_replication_role = 'replica'"] },
  'another role': { statements: ['SET ROLE nobody'], loses: true },
  'another user': { statements: ["SET SESSION AUTHORIZATION 'nobody'"], loses: true },
  'security that raises errors': { statements: ['SET row_security = off'] },
  'a channel, a cursor and a lock': {
    statements: [
      'LISTEN news',
      'DECLARE open CURSOR WITH HOLD FOR SELECT 1',
      'SELECT pg_advisory_lock(pg_backend_pid())',
      'PREPARE one AS SELECT 1',
    ],
  },
  'a table of the same name': { statements: ['CREATE TEMPORARY TABLE lease (key text)'] },
};

async function start(): Promise<UntidyDatabase> {
  const server = await PostgresServer.start();
  for (const sql of [
    'CREATE ROLE nobody',
    'CREATE SCHEMA strange',
    `CREATE FUNCTION strange.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT timestamptz 'epoch'$$`,
    `CREATE FUNCTION strange.pg_client_encoding() RETURNS name LANGUAGE sql AS $$SELECT name 'none'$$`,
  ]) {
    await server.query(sql);
  }
  return {
    connections: CONNECTIONS,
    idle: CONNECTIONS,
    others: new PostgresLockStore(server.pool()),
    newStore: () => {
      const pool = server.pool({ max: CONNECTIONS });
      const leave = async (statements: readonly string[], length: number): Promise<void> => {
        for (const client of await Promise.all(Array.from({ length }, () => pool.connect()))) {
          for (const sql of statements) {
            // Some of it is there already.
            await client.query(sql).catch(() => undefined);
          }
          client.release();
        }
      };
      return { store: new PostgresLockStore(pool), leave };
    },
    leftMs: async (key) => {
      const sql = `SELECT extract(epoch FROM ends - clock_timestamp()) * 1000 AS left FROM distributed_lock.lease WHERE key = 'lock:{${key}}'`;
      const [row] = await server.query<{ left: string }>(sql);
      return Number(row?.left);
    },
    stop: () => server.stop(),
  };
}

givenBackSuite(start, STATES);
