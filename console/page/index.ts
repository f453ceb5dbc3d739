export { LockPageModule } from './lock-page.module.js';
export type { LockPageActions, LockPageOptions } from './lock-page.options.js';
