import { storeContract } from 'nestjs-distributed-lock/store-contract';
import { describe, test } from 'vitest';
import { contractOptions } from './contract-options.js';

storeContract({ describe, test }, contractOptions);
