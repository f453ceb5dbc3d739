// Runs TypeScript of this tree in plain Node: `node --import ./test/support/typescript.mjs file.ts`.
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
