import { describe, jest, test } from '@jest/globals';
import { storeContract } from 'nestjs-distributed-lock/store-contract';
import { contractOptions } from './contract-options.js';

jest.setTimeout(120_000);
storeContract({ describe, test }, contractOptions);
