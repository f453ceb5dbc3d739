import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long the ERP takes for a statement, in milliseconds. */
const STATEMENT_MS = 2_000;

/** Stands for a system of somebody else's, which is slow, and slower the more is asked of it at once. */
@Injectable()
export class Erp {
  async print(customerId: string): Promise<string> {
    await sleep(STATEMENT_MS);
    return `Statement of customer ${customerId}`;
  }
}
