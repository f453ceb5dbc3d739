import { credentials, loadPackageDefinition, Metadata, type Client, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { INestApplication } from '@nestjs/common';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { freePort } from './redis-server';

const PROTO = 'test/fixtures/bank.proto';

/** A message of either side. */
export interface Message {
  readonly text: string;
}

/** A stream on which a client sends, reads, or both. */
export interface ClientCall extends AsyncIterable<Message> {
  write(message: Message): boolean;
  end(): void;
  cancel(): void;
  on(event: 'error', listener: (error: ServiceError) => void): this;
}

type Unary = (message: Message, metadata: Metadata, callback: Answered) => void;
type Answered = (error: ServiceError | null, reply?: Message) => void;
type BankClient = Client & { readonly [rpc: string]: unknown };

/** The texts of the replies that a client gets, and the error that ends them. */
export interface Outcome {
  readonly texts: readonly string[];
  readonly error?: ServiceError;
}

/** A gRPC server of an application, with real clients. */
export class GrpcServer {
  readonly #port: number;
  readonly #clients: BankClient[] = [];

  private constructor(port: number) {
    this.#port = port;
  }

  /** Connects a microservice with the global filters of the application. */
  static async connect(application: INestApplication): Promise<GrpcServer> {
    const port = await freePort();
    application.connectMicroservice<MicroserviceOptions>(
      { transport: Transport.GRPC, options: { url: `127.0.0.1:${port}`, package: 'bank', protoPath: PROTO } },
      { inheritAppConfig: true },
    );
    await application.startAllMicroservices();
    return new GrpcServer(port);
  }

  client(service: 'Failing' | 'Joining'): BankClient {
    const { bank } = loadPackageDefinition(loadSync(PROTO)) as unknown as {
      bank: Record<string, new (url: string, how: unknown) => BankClient>;
    };
    const type = bank[service] as new (url: string, how: unknown) => BankClient;
    const client = new type(`127.0.0.1:${this.#port}`, credentials.createInsecure());
    this.#clients.push(client);
    return client;
  }

  close(): void {
    this.#clients.forEach((client) => client.close());
  }
}

/** Calls a method that takes one message. */
export async function send(client: BankClient, rpc: string, text: string, sent: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const method = client[rpc] as Unary & { readonly responseStream: boolean };
  const metadata = new Metadata();
  Object.entries(sent).forEach(([name, value]) => metadata.set(name, value));
  if (method.responseStream) {
    return read((client[rpc] as (message: Message, metadata: Metadata) => ClientCall).call(client, { text }, metadata));
  }
  return new Promise((resolve) => method.call(client, { text }, metadata, (error, reply) => resolve(outcome(error, reply))));
}

/** Begins a call of a method that takes a stream; `outcome` is what its client gets. */
export function open(client: BankClient, rpc: string): { readonly call: ClientCall; readonly outcome: Promise<Outcome> } {
  const method = client[rpc] as { readonly responseStream: boolean };
  if (method.responseStream) {
    const call = (client[rpc] as () => ClientCall).call(client);
    return { call, outcome: read(call) };
  }
  let call!: ClientCall;
  const answered = new Promise<Outcome>((resolve) => {
    call = (client[rpc] as (callback: Answered) => ClientCall).call(client, (error, reply) => resolve(outcome(error, reply)));
  });
  return { call, outcome: answered };
}

function outcome(error: ServiceError | null, reply?: Message): Outcome {
  return { texts: reply ? [reply.text] : [], ...(error && { error }) };
}

async function read(call: ClientCall): Promise<Outcome> {
  const texts: string[] = [];
  try {
    for await (const { text } of call) {
      texts.push(text);
    }
    return { texts };
  } catch (error) {
    return { texts, error: error as ServiceError };
  }
}

/** The metadata of an error that are the library's, by name. */
export function lockMetadata({ metadata }: ServiceError): Record<string, unknown> {
  expect(metadata).toBeInstanceOf(Metadata);
  const { 'lock-code': code, 'retry-after-ms': retryAfterMs } = metadata.getMap();
  return { code, retryAfterMs };
}
