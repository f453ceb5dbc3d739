import 'reflect-metadata';
import { Controller, Get, Inject, Logger, Param, type INestApplication } from '@nestjs/common';
import { ClientProxyFactory, GrpcMethod, GrpcStreamCall, GrpcStreamMethod, MessagePattern, Transport } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { LockExceptionFilter, LockModule, LockService } from 'nestjs-distributed-lock';
import { concatMap, firstValueFrom, from, map, Observable } from 'rxjs';
import { setTimeout as sleep } from 'node:timers/promises';
import request from 'supertest';
import { GrpcServer, lockMetadata, open, send, type Message, type Outcome } from '../support/grpc-application';
import { freePort } from '../support/redis-server';
import { until } from '../support/until';
import { CODES, KINDS, secretsIn, Vault, vaultStores, type Kind } from '../support/vault';

interface StreamCall {
  once(event: 'data', listener: (message: Message) => void): void;
  write(message: Message): void;
  end(): void;
}

const firstOf = (call: StreamCall): Promise<Message> => new Promise((resolve) => call.once('data', resolve));

@Controller()
class Failing {
  late = 0;

  constructor(@Inject(Vault) private readonly vault: Vault) {}

  @GrpcMethod('Failing', 'Unary')
  async unary({ text }: Message): Promise<Message> {
    return { text: await this.vault.fail(text as Kind) };
  }
  @GrpcMethod('Failing', 'ServerStream')
  serverStream({ text }: Message): Observable<Message> {
    return from(this.vault.fail(text as Kind)).pipe(map((reply) => ({ text: reply })));
  }
  @GrpcStreamMethod('Failing', 'ClientStream')
  clientStream(messages: Observable<Message>): Observable<Message> {
    return messages.pipe(concatMap((message) => this.unary(message)));
  }
  @GrpcStreamMethod('Failing', 'Both')
  both(messages: Observable<Message>): Observable<Message> {
    return this.clientStream(messages);
  }
  @GrpcStreamCall('Failing', 'ClientStreamCall')
  async clientStreamCall(call: StreamCall, callback: (error: null, reply: Message) => void): Promise<void> {
    const message = await firstOf(call);
    if (message.text === 'late') {
      callback(null, { text: 'answered' });
    }
    await this.failLate(message);
  }
  @GrpcStreamCall('Failing', 'BothCall')
  async bothCall(call: StreamCall): Promise<void> {
    const message = await firstOf(call);
    if (message.text === 'late') {
      call.write({ text: 'answered' });
      call.end();
    }
    await this.failLate(message);
  }
  private async failLate({ text }: Message): Promise<void> {
    if (text !== 'late') {
      await this.vault.fail(text as Kind);
      return;
    }
    await sleep(30);
    this.late++;
    await this.vault.fail('busy');
  }
  @Get('fail/:kind')
  request(@Param('kind') kind: Kind): Promise<string> {
    return this.vault.fail(kind);
  }
  @MessagePattern('fail', Transport.TCP)
  message(kind: Kind): Promise<string> {
    return this.vault.fail(kind);
  }
}

/** The statuses of gRPC: ABORTED, UNAVAILABLE and INTERNAL. */
const STATUSES: Readonly<Record<Kind, number>> = { busy: 10, away: 14, lost: 13, key: 13, unlocked: 13 };
const TEXTS: Readonly<Record<number, string>> = { 10: 'Locked', 14: 'Service Unavailable', 13: 'Internal Server Error' };

let application: INestApplication;
let server: GrpcServer;

/** An application whose lock is busy. */
async function start(filtered: boolean, configure: (app: INestApplication) => unknown = () => undefined): Promise<void> {
  Logger.overrideLogger(false);
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ stores: vaultStores() })],
    controllers: [Failing],
    providers: [Vault],
  }).compile();
  application = module.createNestApplication({ logger: false });
  if (filtered) {
    application.useGlobalFilters(new LockExceptionFilter());
  }
  await configure(application);
  server = await GrpcServer.connect(application);
  await application.init();
  await module.get(LockService).acquire('secret-key:1', { by: 'Vault.holder' });
}

afterEach(async () => {
  server.close();
  await application.close();
  Logger.overrideLogger(true);
});

async function failure(rpc: string, kind: Kind, metadata: Readonly<Record<string, string>> = {}): Promise<Required<Outcome>['error']> {
  const client = server.client('Failing');
  if (rpc === 'Unary' || rpc === 'ServerStream') {
    return ((await send(client, rpc, kind, metadata)) as Required<Outcome>).error;
  }
  const { call, outcome } = open(client, rpc);
  call.write({ text: kind });
  return ((await outcome) as Required<Outcome>).error;
}

const READ = ['Unary', 'ServerStream', 'ClientStream', 'Both'];

test.each([...READ, 'ClientStreamCall', 'BothCall'])(
  'with the filter, a client of %s reads a status, a code and when to come again, and neither key nor host',
  async (rpc) => {
    await start(true);
    for (const kind of KINDS) {
      const error = await failure(rpc, kind);
      const code = STATUSES[kind];
      expect(error).toMatchObject({ code, details: TEXTS[code] });
      const { code: lockCode, retryAfterMs } = lockMetadata(error);
      expect(lockCode).toBe(CODES[kind]);
      expect(retryAfterMs).toEqual(kind === 'busy' ? expect.stringMatching(/^\d+$/) : undefined);
      expect(secretsIn(JSON.stringify([error.message, error.details, error.metadata]))).toEqual([]);
    }
  },
);

test.each(READ)('without the filter, a client of %s reads that it is unknown, and neither key nor host', async (rpc) => {
  await start(false);
  for (const kind of KINDS) {
    const error = await failure(rpc, kind);
    expect(error).toMatchObject({ code: 2, details: 'Internal server error' });
    expect(lockMetadata(error)).toEqual({});
    expect(secretsIn(JSON.stringify([error.message, error.details, error.metadata]))).toEqual([]);
  }
});

test('one filter of a hybrid application answers each transport in its own way', async () => {
  const port = await freePort();
  const options = { host: '127.0.0.1', port };
  await start(true, (app) => app.connectMicroservice({ transport: Transport.TCP, options }, { inheritAppConfig: true }));
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  const body = { statusCode: 423, message: 'Locked', code: 'LOCK_NOT_ACQUIRED', retryAfterMs: expect.any(Number) as number };
  try {
    const reply: unknown = await firstValueFrom(client.send('fail', 'busy')).catch((error: unknown) => error);
    expect(reply).toEqual({ status: 'error', ...body });
    const { body: answer } = await request(application.getHttpServer()).get('/fail/busy').expect(423);
    expect(answer).toEqual(body);
    expect(await failure('Unary', 'busy')).toMatchObject({ code: 10 });
  } finally {
    await client.close();
  }
});

test.each(['ClientStreamCall', 'BothCall'])('an error that follows the answer of %s changes nothing', async (rpc) => {
  await start(true);
  const failing = application.get(Failing);
  for (const cancels of [false, true]) {
    const { call, outcome } = open(server.client('Failing'), rpc);
    call.write({ text: 'late' });
    if (cancels) {
      await until('the handler has answered', async () => (await outcome).texts.length > 0);
      call.cancel();
    }
    expect(await outcome).toEqual({ texts: ['answered'] });
    await until('the error is there', () => failing.late === (cancels ? 2 : 1));
  }
  expect(await failure(rpc, 'busy')).toMatchObject({ code: 10 });
});

test("a client's own metadata does not come back with an error", async () => {
  await start(true);
  const { metadata } = await failure('Unary', 'busy', { authorization: 'a token' });
  expect(metadata.get('authorization')).toEqual([]);
});
