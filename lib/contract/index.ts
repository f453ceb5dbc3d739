export { storeContract } from './store-contract.js';
export type { StoreContractOptions, StoreOffer, TestRunner } from './store-contract.options.js';
