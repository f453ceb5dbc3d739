import { NestFactory } from '@nestjs/core';
import { DemoModule } from './demo.module.js';
import type { DemoSettings } from './demo-settings.js';
import { DemoService } from './demo.service.js';
import type { Member } from './member.js';
import { SHARED_BALANCE, type SharedBalance } from './shared-balance.js';

/** A member in this process: a Nest application of its own. */
export async function joinHere(settings: DemoSettings): Promise<Member & { readonly balance: SharedBalance }> {
  // Without warnings: a context is started before its shutdown hooks can be on, which LockModule would warn of.
  const app = await NestFactory.createApplicationContext(DemoModule.with(settings), { abortOnError: false, logger: ['error'] });
  app.enableShutdownHooks();
  const service = app.get(DemoService);
  return {
    name: settings.process,
    pid: process.pid,
    balance: app.get<SharedBalance>(SHARED_BALANCE),
    run: (order) => service.run(order),
    leave: () => app.close(),
  };
}
