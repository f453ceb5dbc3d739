import 'reflect-metadata';
import { Inject, Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockModule, outsideLocks } from 'nestjs-distributed-lock';
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const BUS = new EventEmitter();

@Injectable()
class Orders {
  readonly steps: string[] = [];
  constructor(@Inject('bus') private readonly bus: EventEmitter) {
    bus.on('settled', () => void this.notify());
  }

  @DistributedLock('order')
  async settle(): Promise<void> {
    this.steps.push('settle begins');
    this.bus.emit('settled');
    await sleep(20);
    this.steps.push('settle ends');
  }

  @DistributedLock('order')
  async settleAndHandOver(): Promise<void> {
    this.steps.push('settle begins');
    outsideLocks(() => this.bus.emit('settled'));
    await sleep(20);
    this.steps.push('settle ends');
  }

  @DistributedLock('order')
  async notify(): Promise<void> {
    this.steps.push('notify');
  }
}

test.each([
  ['what is fired and forgotten inside a lock runs beside the rest of the method', 'settle', ['settle begins', 'notify', 'settle ends']],
  ['what is handed over with outsideLocks waits for the lock', 'settleAndHandOver', ['settle begins', 'settle ends', 'notify']],
] as const)('%s', async (_, method, steps) => {
  const module = await Test.createTestingModule({
    imports: [LockModule.forTesting()],
    providers: [Orders, { provide: 'bus', useValue: BUS.removeAllListeners() }],
  }).compile();
  const orders = module.get(Orders);
  await orders[method]();
  await sleep(0);
  await orders.notify();
  expect(orders.steps).toEqual([...steps, 'notify']);
  await module.close();
});
