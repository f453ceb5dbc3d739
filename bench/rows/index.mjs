import { cold } from './cold.mjs';
import { endless } from './endless.mjs';
import { fleet } from './fleet.mjs';
import { handOver } from './hand-over.mjs';
import { hot } from './hot.mjs';
import { load } from './load.mjs';
import { many } from './many.mjs';
import { memory } from './memory.mjs';
import { permits } from './permits.mjs';
import { reentry } from './re-entry.mjs';
import { readMode } from './read-mode.mjs';
import { steady } from './steady.mjs';
import { stores } from './stores.mjs';
import { telemetry } from './telemetry.mjs';
import { transfers } from './transfers.mjs';

export const ROWS = [
  steady,
  cold,
  transfers,
  hot,
  fleet,
  handOver,
  permits,
  readMode,
  reentry,
  memory,
  load,
  telemetry,
  many,
  endless,
  stores,
];

/** A quick run leaves out what takes minutes or mostly waits, unless it is asked for. */
export const QUICK_ROWS = ROWS.filter((row) => ![many, endless, stores].includes(row));
