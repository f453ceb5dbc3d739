import { describe, test } from '@jest/globals';
import { storeContract } from 'nestjs-distributed-lock/store-contract';
import { contractOptions } from './contract-options.js';

storeContract({ describe, test }, contractOptions);
