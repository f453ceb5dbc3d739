import { Controller, createParamDecorator, Inject, Param, Post, type ExecutionContext } from '@nestjs/common';
import { DistributedLock, LockService } from 'nestjs-distributed-lock';
import type { ServerResponse } from 'node:http';

export const ClientSignal = createParamDecorator((_: unknown, context: ExecutionContext): AbortSignal => {
  const reply = context.switchToHttp().getResponse<ServerResponse | { raw: ServerResponse }>();
  const response = 'raw' in reply ? reply.raw : reply; // Fastify wraps it
  const client = new AbortController();
  response.once('close', () => response.writableFinished || client.abort());
  return response.destroyed ? AbortSignal.abort() : client.signal;
});

@Controller('orders')
export class Orders {
  readonly shipped: string[] = [];
  readonly signals: AbortSignal[] = [];

  constructor(@Inject(LockService) readonly locks: LockService) {}

  @Post(':id/shipment')
  @DistributedLock({ key: 'order:<id>', wait: '30s', signal: (_id: string, client: AbortSignal) => client })
  async ship(@Param('id') id: string, @ClientSignal() client: AbortSignal): Promise<void> {
    this.shipped.push(id);
    this.signals.push(client);
  }
}
