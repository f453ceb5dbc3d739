import { Module, type DynamicModule } from '@nestjs/common';
import { LockModule } from 'nestjs-distributed-lock';
import { LockPageModule } from 'nestjs-distributed-lock/page';
import { makeLockStore } from '../lock-store.js';
import { DemoSettings } from './demo-settings.js';
import { DemoService } from './demo.service.js';
import { openBalance } from './open-balance.js';
import { SHARED_BALANCE } from './shared-balance.js';

/** One process of the demo: an ordinary Nest application that knows nothing of the other ones. */
@Module({})
export class DemoModule {
  static with(settings: DemoSettings): DynamicModule {
    const { locks } = settings;
    return {
      module: DemoModule,
      imports: [
        LockModule.forRootAsync({ useFactory: async () => ({ store: await makeLockStore(locks) }) }),
        // It serves no page: it records the calls that ended, for the page of another process.
        LockPageModule.forRoot({ access: 'anybody' }),
      ],
      providers: [
        DemoService,
        { provide: DemoSettings, useValue: settings },
        { provide: SHARED_BALANCE, useFactory: () => openBalance(locks) },
      ],
    };
  }
}
