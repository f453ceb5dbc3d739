import { PostgresServer } from '../support/postgres-server';
import { Program } from '../support/program';
import { RedisServer } from '../support/redis-server';

const IMPORTS = `
  import { LockModule, LockService, MemoryLockStore, RedisLockStore } from 'nestjs-distributed-lock';
  import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
  import { NestFactory } from '@nestjs/core';
  import { Pool } from 'pg';
`;
/** An application of which nothing but its locks can keep the process. */
const APPLICATION = `
  ${IMPORTS}
  const app = await NestFactory.createApplicationContext(LockModule.forRoot({ store: new MemoryLockStore() }), { logger: false });
  const locks = app.get(LockService);
`;

let program: Program;

afterEach(() => program?.kill());

test('a candidate keeps its process in its pauses', async () => {
  program = await Program.start(`
    ${APPLICATION}
    let turns = 0;
    locks.lead('feed', async () => {
      if (++turns === 3) {
        console.log('led');
        setTimeout(() => app.close(), 100);
      }
    }, { pause: 300 });
  `);
  await program.expectToEnd('led\n');
});

test('a leader keeps its process while it only waits for its signal', async () => {
  program = await Program.start(`
    ${APPLICATION}
    locks.lead('feed', ({ signal }) => new Promise((resolve) => {
      signal.addEventListener('abort', resolve);
      console.log('leads');
    }));
    process.once('SIGTERM', () => void app.close());
  `);
  await program.expectToStay();
});

test('a call whose code ignores a shutdown rejects, although nothing else keeps its process', async () => {
  program = await Program.start(`
    ${APPLICATION}
    await new Promise((resolve) => {
      locks.withLock('k', { ttl: 300 }, () => new Promise(resolve)).catch(({ code, bodyRuns }) => console.log(code, bodyRuns));
      setImmediate(resolve);
    });
    await app.close();
    console.log('closed');
  `);
  await program.expectToEnd('closed\nLOCK_LOST true\n');
});

test('a handle whose lock is in doubt is released at the end of its lease, although nothing else keeps its process', async () => {
  const server = await PostgresServer.start();
  program = await Program.start(`
    ${IMPORTS}
    const pool = new Pool({ connectionString: '${server.url}', connectionTimeoutMillis: 1000 });
    pool.on('error', () => undefined);
    const store = new PostgresLockStore(pool, { listen: false });
    await store.ensureSchema();
    const app = await NestFactory.createApplicationContext(LockModule.forRoot({ store }), { logger: false });
    const lock = await app.get(LockService).acquire('k', { ttl: 4000 });
    console.log('held');
    await new Promise((resolve) => {
      const waiting = setInterval(() => undefined, 1000);
      process.once('SIGUSR2', () => resolve(clearInterval(waiting)));
    });
    // The machine has slept.
    const now = Date.now;
    Date.now = () => now() + 60_000;
    await lock.release();
    console.log('released');
  `);
  await server.kill();
  program.signal('SIGUSR2');
  await program.expectToEnd('held\nreleased\n');
  await server.stop();
});

describe('after a boot that failed, a candidate does not keep its process once the store is closed', () => {
  const failedBoot = (store: string, url: string): string => `
    ${IMPORTS}
    const pool = new Pool({ connectionString: '${url}' });
    const store = ${store};
    await store.ensureSchema?.();
    const worker = {
      provide: 'worker',
      inject: [LockService],
      useFactory: (locks) => ({
        onModuleInit() {
          locks.lead('feed', async () => undefined, { pause: 100 });
          throw new Error('no feed');
        },
      }),
    };
    const root = { module: class {}, imports: [LockModule.forRoot({ store })], providers: [worker] };
    try {
      await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
    } catch ({ message }) {
      await store.close();
      await pool.end();
      console.log(message);
    }
  `;

  test('of Redis', async () => {
    const server = await RedisServer.start();
    program = await Program.start(failedBoot(`new RedisLockStore('${server.url}')`, ''));
    await program.expectToEnd('no feed\n');
    await server.stop();
  });

  test('of PostgreSQL', async () => {
    const server = await PostgresServer.start();
    program = await Program.start(failedBoot('new PostgresLockStore(pool)', server.url));
    await program.expectToEnd('no feed\n');
    await server.stop();
  });
});
