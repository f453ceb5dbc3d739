import { Module, type DynamicModule } from '@nestjs/common';
import { LockModule, MemoryLockStore, RedisLockStore } from 'nestjs-distributed-lock';
import { DemoSettings } from './demo-settings.js';
import { DemoService } from './demo.service.js';
import { connectBalance, SHARED_BALANCE, VariableBalance } from './shared-balance.js';

/** One process of the demo: an ordinary Nest application that knows nothing of the other ones. */
@Module({})
export class DemoModule {
  static with(settings: DemoSettings): DynamicModule {
    const { redisUrl } = settings;
    return {
      module: DemoModule,
      imports: [
        LockModule.forRootAsync({
          useFactory: () => ({ store: redisUrl === undefined ? new MemoryLockStore() : new RedisLockStore(redisUrl) }),
        }),
      ],
      providers: [
        DemoService,
        { provide: DemoSettings, useValue: settings },
        {
          provide: SHARED_BALANCE,
          useFactory: () => (redisUrl === undefined ? new VariableBalance() : connectBalance(redisUrl)),
        },
      ],
    };
  }
}
