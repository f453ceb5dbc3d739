import { Worker, type ConnectionOptions } from 'bullmq';
import type { Pool as MySqlPool } from 'mysql2/promise';
import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentLock, DistributedLock, lockKey, type Lock, type LockService } from 'nestjs-distributed-lock';
import type { Pool, PoolClient, QueryResult } from 'pg';

/**
 * The result of `work`. Where `signal` aborts, throws its reason, in place of whatever error the abort causes there.
 */
export async function orLost<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } finally {
    signal.throwIfAborted();
  }
}

export class Reports {
  @DistributedLock({ key: 'report:<0>', ttl: '10s' })
  async send(customerId: string, url: string): Promise<string> {
    const { signal } = currentLock() as Lock;
    const response = await fetch(url, { method: 'POST', body: customerId, signal });
    return response.text();
  }
}

export class Archive {
  @DistributedLock({ key: 'archive:<0>', ttl: '10s' })
  async store(path: string, openRows: () => Readable): Promise<void> {
    const { signal } = currentLock() as Lock;
    await orLost(signal, pipeline(openRows(), createWriteStream(path), { signal }));
  }
}

/**
 * Runs a query that PostgreSQL stops when `signal` aborts. `control` is a pool of its own, for the cancelling alone.
 */
export async function pgQuery(pool: Pool, control: Pool, signal: AbortSignal, sql: string, values: unknown[] = []): Promise<QueryResult> {
  const client = (await pool.connect()) as PoolClient & { readonly processID: number };
  // A connection that ends fails the query, and says so by an event too: without a listener, the process would end.
  const ignore = (): void => undefined;
  client.on('error', ignore);
  const cancel = (): void => {
    control.query('SELECT pg_cancel_backend($1)', [client.processID]).catch((error: unknown) => console.error(error));
  };
  signal.addEventListener('abort', cancel, { once: true });
  try {
    signal.throwIfAborted();
    return await orLost(signal, client.query(sql, values));
  } finally {
    signal.removeEventListener('abort', cancel);
    client.off('error', ignore);
    // A cancel that comes late must not hit the next query of this connection.
    client.release(signal.aborted);
  }
}

/**
 * Runs a query that MySQL or MariaDB stops when `signal` aborts. `control` is a pool of its own, for the killing alone.
 */
export async function mysqlQuery(
  pool: MySqlPool,
  control: MySqlPool,
  signal: AbortSignal,
  sql: string,
  values: unknown[] = [],
): Promise<unknown> {
  const connection = await pool.getConnection();
  const kill = (): void => {
    control.query(`KILL QUERY ${connection.threadId}`).catch((error: unknown) => console.error(error));
  };
  signal.addEventListener('abort', kill, { once: true });
  try {
    signal.throwIfAborted();
    // A query that was killed may answer as if it had ended, SLEEP() for one.
    const [rows] = await orLost(signal, connection.query(sql, values));
    return rows;
  } finally {
    signal.removeEventListener('abort', kill);
    if (signal.aborted) {
      connection.destroy();
    } else {
      connection.release();
    }
  }
}

/** Runs a program until it has ended, which `signal` makes it do. */
export async function runProgram(signal: AbortSignal, command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { signal, stdio: ['ignore', 'inherit', 'inherit'] });
  const code = await ended(child, signal);
  signal.throwIfAborted();
  if (code !== 0) {
    throw new Error(`${command} ended with ${code}`);
  }
}

/** Waits until the program is gone: what does not heed SIGTERM within 5 s is killed. */
async function ended(child: ChildProcess, signal: AbortSignal): Promise<number | string | null> {
  let failure: Error | undefined;
  let timer: NodeJS.Timeout | undefined;
  child.once('error', (error) => (failure = error));
  const kill = (): void => {
    timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
  };
  signal.addEventListener('abort', kill, { once: true });
  const code = await new Promise<number | string | null>((resolve) => {
    child.once('close', (exitCode, killedBy) => resolve(exitCode ?? killedBy));
  });
  signal.removeEventListener('abort', kill);
  clearTimeout(timer);
  if (failure && failure.name !== 'AbortError') {
    throw failure;
  }
  return code;
}

export function exportWorker(
  locks: LockService,
  connection: ConnectionOptions,
  exportRows: (customerId: string, signal: AbortSignal) => Promise<void>,
): Worker<{ customerId: string }> {
  return new Worker<{ customerId: string }>(
    'exports',
    async ({ data }, _token, cancelled) =>
      locks.withLock(lockKey`export:${data.customerId}`, { wait: '1m', signal: cancelled }, async (lock) => {
        const signal = cancelled ? AbortSignal.any([lock.signal, cancelled]) : lock.signal;
        await exportRows(data.customerId, signal);
      }),
    { connection },
  );
}

export class Imports {
  @DistributedLock({ key: 'import:<0>', ttl: '10s' })
  async importAll(_source: string, batches: AsyncIterable<unknown>, write: (batch: unknown) => Promise<void>): Promise<void> {
    const { signal } = currentLock() as Lock;
    for await (const batch of batches) {
      signal.throwIfAborted();
      await write(batch);
      await orLost(signal, sleep(100, undefined, { signal }));
    }
  }
}

export async function importByCheckpoints(locks: LockService, source: string, batches: AsyncIterable<() => Promise<void>>): Promise<void> {
  await locks.withLock(lockKey`import:${source}`, { ttl: '2m', renew: false }, async (lock) => {
    for await (const write of batches) {
      await lock.extend('2m');
      await write();
    }
  });
}
