import { PrismaPg } from '@prisma/adapter-pg';
import * as runtime from '@prisma/client/runtime/client';
import type { Pool } from 'pg';

/** The options of a transaction. */
interface TransactionOptions {
  readonly maxWait?: number;
  readonly timeout?: number;
}

interface BalanceRow {
  readonly customerId: string;
  readonly amount: number;
}

/** The parts of a transaction of the generated client that tests use. */
export interface TransactionClient {
  readonly balance: {
    findUniqueOrThrow(query: { where: { customerId: string } }): Promise<BalanceRow>;
    update(query: { where: { customerId: string }; data: { amount: number | { increment: number } } }): Promise<BalanceRow>;
  };
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
  $transaction<T>(work: (tx: TransactionClient) => Promise<T>, options?: TransactionOptions): Promise<T>;
}

/** The client that `prisma generate` of Prisma 7 makes of the schema below. */
export interface PrismaClient extends TransactionClient {
  $disconnect(): Promise<void>;
}

const SCHEMA = `generator client {
  provider = "prisma-client"
}

datasource db {
  provider = "postgresql"
}

model Balance {
  customerId String @id @map("customer_id")
  amount     Int

  @@map("balance")
}
`;

/** Has no types. */
function ofRuntime(kind: string): Promise<{ wasm: string }> {
  return import(`@prisma/client/runtime/query_compiler_fast_bg.postgresql.${kind}`) as Promise<{ wasm: string }>;
}

/** The output of `prisma generate` 7.10.0 for the schema: running it here would download an engine. */
const GENERATED = {
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: '0edf323efd1d98336f3f0a68684b56f689b900d3',
  activeProvider: 'postgresql',
  inlineSchema: SCHEMA,
  runtimeDataModel: {
    models: {
      Balance: {
        fields: [
          { name: 'customerId', kind: 'scalar', type: 'String', dbName: 'customer_id' },
          { name: 'amount', kind: 'scalar', type: 'Int' },
        ],
        dbName: 'balance',
        schema: null,
      },
    },
    enums: {},
    types: {},
  },
  parameterizationSchema: {
    strings:
      'where Balance.findUnique Balance.findUniqueOrThrow orderBy cursor Balance.findFirst Balance.findFirstOrThrow Balance.findMany data Balance.createOne Balance.createMany Balance.createManyAndReturn Balance.updateOne Balance.updateMany Balance.updateManyAndReturn create update Balance.upsertOne Balance.deleteOne Balance.deleteMany having _count _avg _sum _min _max Balance.groupBy Balance.aggregate AND OR NOT customerId amount equals in notIn lt lte gt gte not contains startsWith endsWith set increment decrement multiply divide'.split(
        ' ',
      ),
    graph: [
      'KwsQBRwAACIAMB0AAAQAEB4AACIAMB8BAAAAASACACQAIQEAAAABACABAAAAAQAgBRwAACIAMB0AAAQAEB4AACIAMB8BACMAISACACQAIQADAAAABAAgAwAA',
      'BQAwBAAAAQAgAwAAAAQAIAMAAAUAMAQAAAEAIAMAAAAEACADAAAFADAEAAABACACHwEAAAABIAIAAAABAQgAAAkAIAIfAQAAAAEgAgAAAAEBCAAACwAwAQgA',
      'AAsAMAIfAQAqACEgAgArACECAAAAAQAgCAAADgAgAh8BACoAISACACsAIQIAAAAEACAIAAAQACACAAAABAAgCAAAEAAgAwAAAAEAIA8AAAkAIBAAAA4AIAEA',
      'AAABACABAAAABAAgBRUAACUAIBYAACYAIBcAACkAIBgAACgAIBkAACcAIAUcAAAaADAdAAAXABAeAAAaADAfAQAbACEgAgAcACEDAAAABAAgAwAAFgAwFAAA',
      'FwAgAwAAAAQAIAMAAAUAMAQAAAEAIAUcAAAaADAdAAAXABAeAAAaADAfAQAbACEgAgAcACEOFQAAHgAgGAAAIQAgGQAAIQAgIQEAAAABIgEAAAAEIwEAAAAE',
      'JAEAAAABJQEAAAABJgEAAAABJwEAAAABKAEAIAAhKQEAAAABKgEAAAABKwEAAAABDRUAAB4AIBYAAB8AIBcAAB4AIBgAAB4AIBkAAB4AICECAAAAASICAAAA',
      'BCMCAAAABCQCAAAAASUCAAAAASYCAAAAAScCAAAAASgCAB0AIQ0VAAAeACAWAAAfACAXAAAeACAYAAAeACAZAAAeACAhAgAAAAEiAgAAAAQjAgAAAAQkAgAA',
      'AAElAgAAAAEmAgAAAAEnAgAAAAEoAgAdACEIIQIAAAABIgIAAAAEIwIAAAAEJAIAAAABJQIAAAABJgIAAAABJwIAAAABKAIAHgAhCCEIAAAAASIIAAAABCMI',
      'AAAABCQIAAAAASUIAAAAASYIAAAAAScIAAAAASgIAB8AIQ4VAAAeACAYAAAhACAZAAAhACAhAQAAAAEiAQAAAAQjAQAAAAQkAQAAAAElAQAAAAEmAQAAAAEn',
      'AQAAAAEoAQAgACEpAQAAAAEqAQAAAAErAQAAAAELIQEAAAABIgEAAAAEIwEAAAAEJAEAAAABJQEAAAABJgEAAAABJwEAAAABKAEAIQAhKQEAAAABKgEAAAAB',
      'KwEAAAABBRwAACIAMB0AAAQAEB4AACIAMB8BACMAISACACQAIQshAQAAAAEiAQAAAAQjAQAAAAQkAQAAAAElAQAAAAEmAQAAAAEnAQAAAAEoAQAhACEpAQAA',
      'AAEqAQAAAAErAQAAAAEIIQIAAAABIgIAAAAEIwIAAAAEJAIAAAABJQIAAAABJgIAAAABJwIAAAABKAIAHgAhAAAAAAABLAEAAAABBSwCAAAAAS0CAAAAAS4C',
      'AAAAAS8CAAAAATACAAAAAQAAAAAFFQAGFgAHFwAIGAAJGQAKAAAAAAAFFQAGFgAHFwAIGAAJGQAKAQIBAgMBBQYBBgcBBwgBCQoBCgwCCw0DDA8BDRECDhIE',
      'ERMBEhQBExUCGhgFGxkL',
    ].join(''),
  },
  compilerWasm: {
    getRuntime: () => ofRuntime('mjs'),
    getQueryCompilerWasmModule: async () => {
      const { wasm } = await ofRuntime('wasm-base64.mjs');
      const { WebAssembly } = globalThis as unknown as { WebAssembly: { Module: new (source: Buffer) => unknown } };
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'));
    },
    importName: './query_compiler_fast_bg.js',
  },
} as unknown as runtime.GetPrismaClientConfig;

/** A machine that stands still may take longer than two seconds to begin a transaction, and five to end it. */
const PATIENCE = { maxWait: 20_000, timeout: 50_000 };

export function openPrisma(pool: Pool): PrismaClient {
  const Client = runtime.getPrismaClient(GENERATED);
  return new Client({ adapter: new PrismaPg(pool), transactionOptions: PATIENCE }) as unknown as PrismaClient;
}
