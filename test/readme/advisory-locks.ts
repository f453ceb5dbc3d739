import type { EntityManager as MikroEntityManager, MikroORM } from '@mikro-orm/postgresql';
import { lockKey } from 'nestjs-distributed-lock';
import { withRowLock } from 'nestjs-distributed-lock/postgres';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource, EntityManager } from 'typeorm';
import { mikroRows, prismaRows } from '../postgres/libraries.js';
import type { PrismaClient, TransactionClient } from '../support/prisma.js';

/** Three transactions, each of which adds 1 to a balance. */
export async function addThree(dataSource: DataSource, prisma: PrismaClient, orm: MikroORM, customerId: string): Promise<void> {
  const key = lockKey`balance:${customerId}`;
  // TypeORM
  await dataSource.transaction((tx) => withRowLock(tx, key, () => addByTypeOrm(tx, customerId)));
  // Prisma
  await prisma.$transaction((tx) => withRowLock(prismaRows(tx), key, () => addByPrisma(tx, customerId)));
  // MikroORM
  await orm.em.fork().transactional((em) => withRowLock(mikroRows(em), key, () => addByMikroOrm(em, customerId)));
}

interface Row {
  readonly amount: number;
}

/** Only a lock keeps these two statements together. */
async function addByTypeOrm(tx: EntityManager, customerId: string): Promise<void> {
  const [row] = await tx.query<Row[]>('SELECT amount FROM balance WHERE customer_id = $1', [customerId]);
  await sleep(10);
  await tx.query('UPDATE balance SET amount = $2 WHERE customer_id = $1', [customerId, Number(row?.amount) + 1]);
}

async function addByPrisma(tx: TransactionClient, customerId: string): Promise<void> {
  const { amount } = await tx.balance.findUniqueOrThrow({ where: { customerId } });
  await sleep(10);
  await tx.balance.update({ where: { customerId }, data: { amount: amount + 1 } });
}

async function addByMikroOrm(em: MikroEntityManager, customerId: string): Promise<void> {
  const [row] = await em.execute<Row[]>('SELECT amount FROM balance WHERE customer_id = ?', [customerId]);
  await sleep(10);
  await em.execute('UPDATE balance SET amount = ? WHERE customer_id = ?', [Number(row?.amount) + 1, customerId]);
}
