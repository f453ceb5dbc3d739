import { Module, type DynamicModule } from '@nestjs/common';
import { lockPageController } from './lock-page.controller.js';
import { LockPage } from './lock-page.js';
import { checkPageOptions, type LockPageOptions } from './lock-page.options.js';
import { PAGE_OPTIONS } from './page-options.token.js';

/**
 * A page that shows the locks of all processes while somebody looks: who holds which lock, who waits for whom, and
 * which locks were lost. Import it beside `LockModule`, once.
 */
@Module({})
export class LockPageModule {
  /**
   * Throws `LockConfigurationError` where there are neither `guards` nor `access: 'anybody'`: the page shows the keys
   * of all locks.
   */
  static forRoot(options: LockPageOptions): DynamicModule {
    const checked = checkPageOptions(options);
    return {
      module: LockPageModule,
      imports: checked.imports,
      controllers: [lockPageController(checked)],
      providers: [LockPage, { provide: PAGE_OPTIONS, useValue: checked }],
    };
  }
}
