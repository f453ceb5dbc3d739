import 'reflect-metadata';
import { ConflictException, Controller, Inject, Module, Param, Post, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, LockExceptionFilter, LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import request, { type Response } from 'supertest';
import { RedisServer } from '../support/redis-server';

const BUYERS = 500;
const IN_STOCK = 200;

let redis: RedisServer;

/** The article's stock in Redis, which is read, and written a moment later. */
async function sell(article: string): Promise<{ left: number }> {
  const inStock = Number(await redis.client.get(`stock:${article}`));
  await sleep(1);
  if (inStock === 0) {
    throw new ConflictException('sold out');
  }
  await redis.client.set(`stock:${article}`, inStock - 1);
  return { left: inStock - 1 };
}

@Controller('articles/:article')
class StockController {
  @Post('sale')
  @DistributedLock({ key: 'article:<article>', wait: '5m', ttl: '1m' })
  async patient(@Param('article') article: string): Promise<{ left: number }> {
    return sell(article);
  }

  @Post('sale-at-once')
  @DistributedLock({ key: 'article:<article>', wait: 0, ttl: '1m' })
  async atOnce(@Param('article') article: string): Promise<{ left: number }> {
    return sell(article);
  }
}

@Module({ controllers: [StockController] })
class StockModule {
  constructor(@Inject(LockService) readonly locks: LockService) {}
}

let applications: INestApplication[];
beforeAll(async () => {
  redis = await RedisServer.start();
  applications = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const locks = LockModule.forRoot({ store: new RedisLockStore(redis.url) });
      const application = await NestFactory.create({ module: StockModule, imports: [locks] }, { logger: false });
      application.useGlobalFilters(new LockExceptionFilter());
      await application.listen(0, '127.0.0.1');
      return application;
    }),
  );
});
afterAll(async () => {
  await Promise.all(applications.map((application) => application.close()));
  await redis.stop();
});

/** All buyers at once, each at one of the applications. */
function buy(path: string): Promise<Response[]> {
  return Promise.all(
    Array.from({ length: BUYERS }, (_, buyer) =>
      request(applications[buyer % applications.length]?.getHttpServer()).post(`/articles/${path}`),
    ),
  );
}

const having = (responses: readonly Response[], status: number): Response[] => responses.filter((response) => response.status === status);

test('of 500 buyers at three applications exactly so many get an article as are in stock', async () => {
  await redis.client.set('stock:lamp', IN_STOCK);
  const responses = await buy('lamp/sale');
  const sold = having(responses, 201);
  expect(sold).toHaveLength(IN_STOCK);
  expect(having(responses, 409)).toHaveLength(BUYERS - IN_STOCK);
  // Each is told of another article.
  const left = sold.map(({ body }) => (body as { left: number }).left);
  expect(left.toSorted((a, b) => a - b)).toEqual(Array.from({ length: IN_STOCK }, (_, index) => index));
  expect(await redis.client.get('stock:lamp')).toBe('0');
});

test('buyers who do not wait get an article, or are told when to come again, and none is lost', async () => {
  await redis.client.set('stock:chair', BUYERS);
  const responses = await buy('chair/sale-at-once');
  const sold = having(responses, 201);
  const busy = having(responses, 423);
  expect(sold.length).toBeGreaterThan(0);
  expect(sold.length + busy.length).toBe(BUYERS);
  expect(await redis.client.get('stock:chair')).toBe(String(BUYERS - sold.length));
});

test('while the article is locked elsewhere, each buyer who does not wait gets a clean error', async () => {
  await redis.client.set('stock:table', BUYERS);
  const locks = applications[0]?.get(LockService) as LockService;
  const held = await locks.acquire('article:table', { ttl: '5m' });
  const responses = await buy('table/sale-at-once');
  await held.release();
  expect(having(responses, 423)).toHaveLength(BUYERS);
  for (const { headers, body, text } of responses) {
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(body).toEqual({
      statusCode: 423,
      message: 'Locked',
      code: 'LOCK_NOT_ACQUIRED',
      retryAfterMs: expect.any(Number) as unknown,
    });
    expect(text).not.toContain('table');
  }
  expect(await redis.client.get('stock:table')).toBe(String(BUYERS));
});
