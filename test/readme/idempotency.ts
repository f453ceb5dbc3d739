import {
  BadRequestException,
  Body,
  ConflictException,
  Controller,
  createParamDecorator,
  Inject,
  Param,
  Post,
  UnprocessableEntityException,
  type ExecutionContext,
} from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DataSource, type EntityManager } from 'typeorm';

export interface Payment {
  readonly amount: number;
}

export interface Receipt {
  readonly id: number;
}

interface Stored<T> {
  readonly digest: string;
  readonly answer: T;
}

export const IdempotencyKey = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const key = context.switchToHttp().getRequest<IncomingMessage>().headers['idempotency-key'];
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new BadRequestException('The header Idempotency-Key has 1 to 255 characters.');
  }
  return key;
});

function stillRuns(): never {
  throw new ConflictException('The first request with this Idempotency-Key still runs.');
}

@Controller()
export class Payments {
  constructor(@Inject(DataSource) private readonly dataSource: DataSource) {}

  @Post('customers/:id/payments')
  @DistributedLock({ key: 'payment:<id>:<key>', wait: 0, onBusy: stillRuns })
  async pay(@Param('id') id: string, @IdempotencyKey() key: string, @Body() payment: Payment): Promise<Receipt> {
    return this.answerOnce(id, key, payment, (tx) => this.book(tx, id, payment));
  }

  @Post('customers/:id/patient-payments')
  @DistributedLock({ key: 'payment:<id>:<key>', wait: '30s' })
  async payPatiently(@Param('id') id: string, @IdempotencyKey() key: string, @Body() payment: Payment): Promise<Receipt> {
    return this.answerOnce(id, key, payment, (tx) => this.book(tx, id, payment));
  }

  async answerOnce<T>(customer: string, key: string, body: object, effect: (tx: EntityManager) => Promise<T>): Promise<T> {
    const digest = createHash('sha256').update(JSON.stringify(body)).digest('hex');
    return this.dataSource.transaction(async (tx) => {
      const find = 'SELECT digest, answer FROM answers WHERE customer = $1 AND key = $2';
      const [first] = await tx.query<Stored<T>[]>(find, [customer, key]);
      if (first && first.digest !== digest) {
        throw new UnprocessableEntityException('This Idempotency-Key came with another body.');
      }
      if (first) {
        return first.answer;
      }
      const answer = await effect(tx);
      await tx.query('INSERT INTO answers VALUES ($1, $2, $3, $4)', [customer, key, digest, JSON.stringify(answer)]);
      return answer;
    });
  }

  private async book(tx: EntityManager, customer: string, payment: Payment): Promise<Receipt> {
    const book = 'INSERT INTO payments (customer, amount) VALUES ($1, $2) RETURNING id';
    const [receipt] = await tx.query<[Receipt]>(book, [customer, payment.amount]);
    return receipt;
  }
}
