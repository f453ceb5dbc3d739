export { storeContract } from './store-contract.js';
export type { StoreContractOptions, StoreOffer } from './store-contract.options.js';
export type { TestRunner } from './store-contract.options.js';
