import { jest } from '@jest/globals';
import {
  Controller,
  Get,
  Inject,
  Logger,
  Param,
  Res,
  Sse,
  UseFilters,
  type DynamicModule,
  type INestApplication,
  type MessageEvent,
  type Type,
} from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import type { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LockExceptionFilter, LockModule, LockService } from 'nestjs-distributed-lock';
import { hostname } from 'node:os';
import { inspect } from 'node:util';
import { defaultIfEmpty, type Observable } from 'rxjs';
import { Vault, vaultStores, type Kind } from './vault';

/** The response of Express, or the response of Fastify around it. */
type BegunResponse = { write(text: string): void } & { readonly raw?: { write(text: string): void } };

@Controller()
class Requests {
  constructor(@Inject(Vault) private readonly vault: Vault) {}
  @Get('fail/:kind')
  fail(@Param('kind') kind: Kind): Promise<string> {
    return this.vault.fail(kind);
  }
  @Get('begun')
  async begun(@Res() response: BegunResponse): Promise<void> {
    (response.raw ?? response).write('[');
    await this.vault.busy('1');
  }
  @Get('skipped')
  skipped(): Observable<string> {
    return this.vault.skipped('1');
  }
  @Get('answered')
  answered(): Observable<string | undefined> {
    return this.vault.skipped('1').pipe(defaultIfEmpty(undefined));
  }
  @Sse('watch')
  watch(): Observable<MessageEvent> {
    return this.vault.watch('3');
  }
  @MessagePattern('fail')
  message(kind: Kind): Promise<string> {
    return this.vault.fail(kind);
  }
}

@Controller()
@UseFilters(LockExceptionFilter)
class FilteredRequests extends Requests {}

/** All that was logged since the test began. */
export const logged: string[] = [];
const log = (...args: unknown[]): void => args.forEach((one) => void logged.push(inspect(one)));
const LOGGER = { log, error: log, warn: log, debug: log, verbose: log, fatal: log };
const applications: INestApplication[] = [];
const nodeEnv = process.env['NODE_ENV'];

/** Keeps what each test logs, and ends its applications. */
export function keepLogs(): void {
  beforeEach(() => {
    logged.length = 0;
    Logger.overrideLogger(LOGGER);
  });
  afterEach(async () => {
    process.env['NODE_ENV'] = nodeEnv;
    await Promise.all(applications.splice(0).map((application) => application.close()));
    Logger.overrideLogger(true);
    jest.restoreAllMocks();
  });
}

interface Parts {
  readonly filtered?: boolean;
  readonly imports?: readonly DynamicModule[];
  readonly more?: readonly Type[];
  readonly providers?: readonly { provide: string; useClass: Type }[];
}

/** An application whose lock is busy, on a real server. */
export async function start(
  adapter: ExpressAdapter | FastifyAdapter,
  { filtered = false, imports = [], more = [], providers = [] }: Parts = {},
  configure: (application: INestApplication) => unknown = () => undefined,
): Promise<INestApplication> {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ stores: vaultStores() }), ...imports],
    controllers: [filtered ? FilteredRequests : Requests],
    providers: [Vault, ...more, ...providers],
  }).compile();
  const application = module.createNestApplication(adapter, { logger: LOGGER });
  applications.push(application);
  if (filtered) {
    application.useGlobalFilters(new LockExceptionFilter());
  }
  await configure(application);
  await application.init();
  if (adapter instanceof FastifyAdapter) {
    await (application as NestFastifyApplication).getHttpAdapter().getInstance().ready();
  }
  await module.get(LockService).acquire('secret-key:1', { by: 'Vault.holder' });
  return application;
}

export const FILTERS = [
  ['without the filter', false],
  ['with the filter', true],
] as const;

/** The log has every fact. */
export function expectFullLog(kind: Kind): void {
  const told = logged.join('\n');
  expect(told).toContain(kind === 'key' ? 'Vault.busy: ' : '"secret-key');
  if (kind === 'busy') {
    expect(told).toContain(`it is held by ${hostname()} (pid ${process.pid}) Vault.holder since`);
  }
  if (kind === 'away') {
    expect(told).toContain('ECONNREFUSED 127.0.0.1:1');
  }
}
