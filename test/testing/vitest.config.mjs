import { fileURLToPath } from 'node:url';

const lib = (file) => fileURLToPath(new URL(`../../lib/${file}`, import.meta.url));

export default {
  resolve: {
    alias: [
      { find: /^nestjs-distributed-lock$/, replacement: lib('index.ts') },
      { find: /^nestjs-distributed-lock\/testing$/, replacement: lib('testing/index.ts') },
    ],
  },
  test: { pool: 'threads', include: ['test/testing/*.vitest.ts'], testTimeout: 20_000 },
};
