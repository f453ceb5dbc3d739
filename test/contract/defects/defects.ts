import { DEFECTS_OF_ACQUIRE } from './acquire';
import { DEFECTS_OF_EXCHANGE } from './exchange';
import { DEFECTS_OF_FENCES } from './fences';
import { DEFECTS_OF_HEALTH } from './health';
import { DEFECTS_OF_KEYS } from './keys';
import { DEFECTS_OF_LEASES } from './leases';
import { DEFECTS_OF_THE_LIFE_CYCLE } from './life-cycle';
import { DEFECTS_OF_MESSAGES } from './messages';
import { DEFECTS_OF_OPERATOR } from './operator';
import { DEFECTS_OF_PERMITS } from './permits';
import { DEFECTS_OF_READERS } from './readers';
import { DEFECTS_OF_RELEASE } from './release';
import { DEFECTS_OF_RENEW } from './renew';
import { DEFECTS_OF_SHARING } from './sharing';
import { DEFECTS_OF_TICKETS } from './tickets';
import { DEFECTS_OF_TURNS } from './turns';
import { DEFECTS_OF_TURNS_OF_SHARERS } from './turns-of-sharers';
import type { Defect } from './defect';

/** Defects that the contract has to notice. Each is one edit of a store that keeps the contract. */
export const DEFECTS: Readonly<Record<string, Defect>> = {
  ...DEFECTS_OF_ACQUIRE,
  ...DEFECTS_OF_RELEASE,
  ...DEFECTS_OF_RENEW,
  ...DEFECTS_OF_LEASES,
  ...DEFECTS_OF_FENCES,
  ...DEFECTS_OF_KEYS,
  ...DEFECTS_OF_THE_LIFE_CYCLE,
  ...DEFECTS_OF_TICKETS,
  ...DEFECTS_OF_OPERATOR,
  ...DEFECTS_OF_MESSAGES,
  ...DEFECTS_OF_HEALTH,
  ...DEFECTS_OF_TURNS,
  ...DEFECTS_OF_EXCHANGE,
  ...DEFECTS_OF_SHARING,
  ...DEFECTS_OF_READERS,
  ...DEFECTS_OF_PERMITS,
  ...DEFECTS_OF_TURNS_OF_SHARERS,
};
