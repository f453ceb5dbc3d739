import 'reflect-metadata';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { Inject, Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClsModule } from 'nestjs-cls';
import { DataSource } from 'typeorm';
import type { Account, Run } from './accounts.js';
import { check } from './checks.js';
import { followTypeOrm } from './recipes.js';

@Injectable()
class Service {
  constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

  readonly run: Run = (statement) => this.host.tx.query(statement);

  @Transactional()
  async transaction(body: (run: Run) => Promise<void>): Promise<void> {
    await body(this.run);
  }
}

async function open(url: string): Promise<Account> {
  const dataSource = await new DataSource({ type: 'postgres', url }).initialize();
  followTypeOrm(dataSource);
  const application = await NestFactory.createApplicationContext(
    {
      module: class {},
      imports: [
        ClsModule.forRoot({
          plugins: [
            new ClsPluginTransactional({
              imports: [{ module: class {}, providers: [{ provide: DataSource, useValue: dataSource }], exports: [DataSource] }],
              adapter: new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource }),
            }),
          ],
        }),
      ],
      providers: [Service],
    },
    { logger: ['error'] },
  );
  const service = application.get(Service);
  return {
    transaction: (body) => service.transaction(body),
    nested: (inner, outer) =>
      service.transaction(async (run) => {
        await service.transaction(inner);
        await outer(run);
      }),
    close: async () => {
      await application.close();
      await dataSource.destroy();
    },
  };
}

// In a process of its own: it requires Nest, which jest cannot.
const account = await open(process.argv[2] as string);
process.stdout.write(JSON.stringify(await check(account)));
await account.close();
