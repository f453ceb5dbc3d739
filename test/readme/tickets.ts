// The code of docs/tickets.md.
import 'reflect-metadata';
import { HttpService } from '@nestjs/axios';
import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject, Injectable, Module, type OnModuleInit } from '@nestjs/common';
import { APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import type { ClientProxy, MicroserviceOptions } from '@nestjs/microservices';
import { Transport } from '@nestjs/microservices';
import type { Job, Queue, QueueEvents } from 'bullmq';
import { makeTickets, DistributedLock, enterTickets } from 'nestjs-distributed-lock';
import {
  acceptTickets,
  enterTicketsOf,
  sendTickets,
  ticketHeaders,
  TicketsInterceptor,
  withTickets,
} from 'nestjs-distributed-lock/tickets';
import { firstValueFrom } from 'rxjs';

declare class AppModule {}
declare const stock: { reserve(orderId: string): Promise<void> };

@Injectable()
export class Orders implements OnModuleInit {
  constructor(
    @Inject(HttpService) private readonly http: HttpService,
    @Inject('STOCK') private readonly client: ClientProxy,
    @Inject('QUEUE') private readonly queue: Queue,
    @Inject('EVENTS') private readonly queueEvents: QueueEvents,
  ) {}

  @DistributedLock('order:<orderId>')
  async ship(orderId: string): Promise<void> {
    await fetch(`http://stock:3000/reserve/${orderId}`, { redirect: 'error', headers: { ...ticketHeaders() } });
  }

  onModuleInit(): void {
    sendTickets(this.http.axiosRef, 'http://stock:3000');
  }

  @DistributedLock('order:<orderId>')
  async cancel(orderId: string): Promise<void> {
    await firstValueFrom(this.client.send('cancel', withTickets({ orderId })));
  }

  @DistributedLock('order:<orderId>')
  async pack(orderId: string): Promise<void> {
    const job = await this.queue.add('pack', withTickets({ orderId }));
    await job.waitUntilFinished(this.queueEvents);
  }
}

export async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule);
  app.use(acceptTickets());
  await app.listen(3000);
}

@Module({ providers: [{ provide: APP_INTERCEPTOR, useClass: TicketsInterceptor }] })
export class MessagesModule {}

export async function microservice(): Promise<void> {
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule, { transport: Transport.TCP });
  const tickets = new TicketsInterceptor();
  app.registerPreRequestHook((context, next) => tickets.intercept(context, { handle: next }));
  await app.listen();
}

@Processor('packing')
export class PackingProcessor extends WorkerHost {
  process(job: Job<{ orderId: string }>): Promise<void> {
    return enterTicketsOf(job.data, () => stock.reserve(job.data.orderId));
  }
}

export async function byHand(socket: { send(text: string): void }, orderId: string): Promise<void> {
  socket.send(JSON.stringify({ orderId, tickets: makeTickets() }));
}

export async function onMessage(text: string): Promise<void> {
  const { orderId, tickets } = JSON.parse(text) as { orderId: string; tickets?: string };
  await enterTickets(tickets, () => stock.reserve(orderId));
}
