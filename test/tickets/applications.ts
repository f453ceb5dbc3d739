import 'reflect-metadata';
import { Inject, Injectable, Logger, type DynamicModule, type INestApplication, type LoggerService, type Type } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { assertLocked, makeTickets, DistributedLock, LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { inspect } from 'node:util';
import { concatMap, from, timer, type Observable } from 'rxjs';
import { prepareForMiddleware } from '../support/nest-major';
import { RedisServer } from '../support/redis-server';

/** Calls the other application from inside its lock. */
@Injectable()
export class Shop {
  constructor(@Inject(LockService) readonly locks: LockService) {}

  @DistributedLock('order:<id>')
  async order<T>(id: string, call: (fence: number) => Promise<T>): Promise<T> {
    return call(assertLocked(`order:${id}`).fence);
  }
}

/** The other application's service: its methods lock the same key. */
@Injectable()
export class Stock {
  constructor(@Inject(LockService) readonly locks: LockService) {}

  /** Nests: the fence is that of the inner call. */
  @DistributedLock('order:<id>')
  async reserve(id: string): Promise<number> {
    return this.fenceOf(id);
  }

  @DistributedLock({ key: 'order:<id>', wait: 0 })
  async fenceOf(id: string): Promise<number> {
    return assertLocked(`order:${id}`).fence;
  }

  /** Neither its code nor its type says what it returns, as where a compiler writes no types. */
  @Reflect.metadata('design:returntype', Object)
  @DistributedLock('order:<id>')
  reserveUndeclared(id: string) {
    return this.fenceOf(id);
  }

  /** Calls locked methods while it emits, though it is not locked itself. */
  watch(id: string): Observable<number> {
    return timer(5, 5).pipe(concatMap(() => from(this.reserve(id))));
  }

  /** Runs until it is told that its lock is lost. */
  @DistributedLock('order:<id>')
  async untilLost(id: string): Promise<void> {
    const { signal } = assertLocked(`order:${id}`);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }
}

export interface Parts {
  /** For how long locked calls wait, in milliseconds: brief where a call is to be refused. */
  readonly wait?: number;
  readonly adapter?: ExpressAdapter | FastifyAdapter;
  readonly imports?: readonly (DynamicModule | Type)[];
  readonly controllers?: readonly Type[];
  readonly providers?: readonly Type[];
  readonly configure?: (application: INestApplication) => unknown;
}

/** Applications on one Redis server, each with a store of its own. What they log is kept. */
export class Applications {
  readonly logged: string[] = [];
  readonly #redis: RedisServer;
  readonly #started: INestApplication[] = [];
  readonly #logger: LoggerService;

  private constructor(redis: RedisServer) {
    this.#redis = redis;
    const log = (...args: unknown[]): void => args.forEach((one) => void this.logged.push(inspect(one)));
    this.#logger = { log, error: log, warn: log, debug: log, verbose: log, fatal: log };
  }

  static async open(): Promise<Applications> {
    return new Applications(await RedisServer.start());
  }

  get redisPort(): number {
    return this.#redis.port;
  }

  async start({
    wait = 10_000,
    adapter = new ExpressAdapter(),
    imports = [],
    controllers = [],
    providers = [],
    configure,
  }: Parts): Promise<INestApplication> {
    Logger.overrideLogger(this.#logger);
    // No renewal comes before the news of a forced release.
    const locks = LockModule.forRoot({ store: new RedisLockStore(this.#redis.url), ttl: '60s', wait, debug: true });
    const module = await Test.createTestingModule({
      imports: [locks, ...imports],
      controllers: [...controllers],
      providers: [Shop, Stock, ...providers],
    })
      .setLogger(this.#logger)
      .compile();
    const application = module.createNestApplication(adapter, { logger: this.#logger });
    this.#started.push(application);
    await prepareForMiddleware(application);
    await configure?.(application);
    await application.listen(0, '127.0.0.1');
    return application;
  }

  async shop(imports: Parts['imports'] = []): Promise<Shop> {
    return (await this.start({ imports })).get(Shop);
  }

  /** Ends those that were started. */
  async end(): Promise<void> {
    await Promise.all(this.#started.splice(0).map((application) => application.close()));
    this.logged.length = 0;
  }

  async close(): Promise<void> {
    await this.end();
    Logger.overrideLogger(true);
    await this.#redis.stop();
  }
}

/** Texts that a service has to refuse, each made inside the lock on `order:1`. */
export const WRONG_TEXTS: readonly [name: string, status: number, make: () => string][] = [
  ['is malformed', 400, () => 'nonsense'],
  ['is empty', 400, () => ''],
  ['is too long', 400, () => (makeTickets() as string).repeat(40)],
  ['was made up', 500, () => changed(([key, , fence, position]) => [key, 'e2a6bb5c-57e7-4be3-b1f5-7f0fa7d9ecb5', fence, position])],
  ['is of another key', 423, () => changed(([, ...rest]) => ['order:2', ...rest])],
  ['is of another store', 423, () => changed((entry) => [...entry, 'reports'])],
];

function changed(change: (entry: unknown[]) => unknown[]): string {
  const entries = JSON.parse(Buffer.from(makeTickets() as string, 'base64url').toString()) as unknown[][];
  return Buffer.from(JSON.stringify(entries.map(change))).toString('base64url');
}
