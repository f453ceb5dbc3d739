import { injectionToken } from '../../lib/nest/injection-token.js';

/** The token of the checked options. */
export const PAGE_OPTIONS = injectionToken('options of LockPageModule');
