import type { Defect } from './defect.js';
import { DEFECTS_OF_BATCHES } from './defects-of-batches.js';
import { DEFECTS_OF_CORE } from './defects-of-core.js';
import { DEFECTS_OF_FEATURES } from './defects-of-features.js';
import { DEFECTS_OF_TABLE } from './defects-of-table.js';

export const DEFECTS: readonly Defect[] = [...DEFECTS_OF_CORE, ...DEFECTS_OF_BATCHES, ...DEFECTS_OF_FEATURES, ...DEFECTS_OF_TABLE];
