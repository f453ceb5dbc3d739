/** @jest-environment-options {"allowedStopMs": 600000} */
// Nothing here depends on time, and the tests of one project build on each other: none is run again.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RedisServer } from '../support/redis-server.js';
import { INSTALL_MS, Workshop, type Consumer, type ModuleType } from './consumer.js';
import { COMMAND_MS } from './run.js';

/** Longer than `run` lets its commands run, of which a test has three at most: their output is what a failure shows. */
const TEST_MS = 3 * COMMAND_MS + 10_000;

const PROJECTS = ['nest12', 'nest11', 'nest10', 'without-ioredis'] as const;

type Project = (typeof PROJECTS)[number];

const VERSIONS: readonly [Project, Readonly<Record<string, string>>][] = [
  [
    'nest12',
    {
      '@nestjs/core': '12',
      '@nestjs/terminus': '12',
      '@opentelemetry/api': '1.10',
      '@opentelemetry/sdk-metrics': '3',
      '@opentelemetry/sdk-trace': '3',
      ioredis: '6',
      'ioredis-other': '5',
      typescript: '6',
    },
  ],
  [
    'nest11',
    {
      '@nestjs/core': '11',
      '@nestjs/terminus': '11',
      '@opentelemetry/api': '1.9',
      '@opentelemetry/sdk-metrics': '2',
      '@opentelemetry/sdk-trace': '2',
      ioredis: '5',
      'ioredis-other': '6',
      typescript: '5',
    },
  ],
  [
    'nest10',
    {
      '@nestjs/core': '10',
      '@nestjs/terminus': '10',
      '@opentelemetry/api': '1.9',
      '@opentelemetry/sdk-metrics': '2',
      '@opentelemetry/sdk-trace': '2',
      ioredis: '5',
      'ioredis-other': '6',
      typescript: '5',
    },
  ],
];

/** A project, the `moduleResolution` with which it is compiled, and the kind of modules that this makes. */
const COMPILED: readonly [Project, string, ModuleType][] = [
  ['nest12', 'nodenext', 'module'],
  ['nest12', 'bundler', 'commonjs'],
  ['nest11', 'node10', 'commonjs'],
  ['nest11', 'bundler', 'module'],
  ['nest11', 'nodenext', 'commonjs'],
  ['nest10', 'node10', 'commonjs'],
  ['nest10', 'bundler', 'module'],
  ['nest10', 'nodenext', 'commonjs'],
];

const MODULE_TYPES: readonly ModuleType[] = ['module', 'commonjs'];

const workshop = new Workshop();
const consumers = new Map<Project, Consumer>();
let redis: RedisServer;

beforeAll(async () => {
  redis = await RedisServer.start();
  await workshop.pack();
  const env = { MATRIX_REDIS_URL: redis.url };
  await Promise.all(PROJECTS.map(async (project) => consumers.set(project, await workshop.consumer(project, env))));
}, INSTALL_MS + TEST_MS);

afterAll(async () => {
  await redis?.stop();
  workshop.clear();
});

function consumer(project: Project): Consumer {
  return consumers.get(project) as Consumer;
}

describe('the packed package', () => {
  test.each(VERSIONS)('meets in %s the versions %j', (project, versions) => {
    for (const [name, major] of Object.entries(versions)) {
      expect(`${name} ${consumer(project).version(name)}`).toMatch(`${name} ${major}.`);
    }
  });

  test(
    'works with Nest 12 in ESM jest with swc',
    async () => {
      const { stderr } = await consumer('nest12').node('--experimental-vm-modules', 'node_modules/jest/bin/jest.js');
      expect(stderr).toContain('5 passed, 5 total');
    },
    TEST_MS,
  );

  test.each<Project>(['nest11', 'nest10'])(
    'works in %s in CommonJS ts-jest with moduleResolution node10',
    async (project) => {
      const { stderr } = await consumer(project).node('node_modules/jest/bin/jest.js');
      expect(stderr).toContain('5 passed, 5 total');
    },
    TEST_MS,
  );

  describe.each(COMPILED)('in %s, compiled with moduleResolution %s to %s', (project, resolution, type) => {
    test(
      'type checks, its declarations included, and refuses a synchronous method',
      async () => {
        const errors = await consumer(project).compile(resolution, type);
        expect(errors).toEqual([expect.stringMatching(/^types\/sync-method\.ts\(5,\d+\): error TS1241: /)]);
      },
      TEST_MS,
    );

    test(
      'runs alone on memory and on Redis with both versions of ioredis, and answers over Express and Fastify',
      async () => {
        const { stdout, stderr } = await consumer(project).node(`out/${resolution}/src/main.js`);
        expect(stdout).toBe('all checks passed\n');
        expect(stderr).not.toContain('LockWarning');
      },
      TEST_MS,
    );
  });

  test.each<Project>(['nest12', 'nest11', 'nest10'])(
    'is one copy, and re-enters, where a process of %s both imports and requires it',
    async (project) => {
      for (const script of ['import-and-require.mjs', 'require-and-import.cjs']) {
        const { stderr } = await consumer(project).node(`scripts/${script}`);
        expect(stderr).not.toContain('LockWarning');
      }
    },
    TEST_MS,
  );

  test.each<[Project, string]>([
    ['nest12', '["degraded","degraded",false,"polls"]'],
    ['nest11', '["ok","up",true,"polls"]'],
    ['nest10', '["ok","up",true,"polls"]'],
  ])(
    'tells the Terminus of %s which locks are up, degraded and down',
    async (project, degraded) => {
      const { stdout } = await consumer(project).node('scripts/health.mjs');
      expect(stdout.trim().split('\n')).toEqual(['["ok","up",false]', degraded, '["error","down",false,"noMajority","membersAway"]']);
    },
    TEST_MS,
  );

  test.each<Project>(['nest12', 'nest11', 'nest10'])(
    'warns in %s of a second copy, naming both places',
    async (project) => {
      const { folder } = consumer(project);
      consumer(project).addSecondCopy();
      const { stderr } = await consumer(project).node('scripts/two-copies.mjs');
      const warnings = stderr.split('\n').filter((line) => line.includes('LockWarning'));
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain(`from ${folder}/node_modules/nestjs-distributed-lock/`);
      expect(warnings[0]).toContain(`from ${folder}/scripts/second/node_modules/nestjs-distributed-lock/`);
    },
    TEST_MS,
  );
});

describe('an application that esbuild bundled and minified', () => {
  describe.each(MODULE_TYPES)('as %s', (type) => {
    test(
      'locks with keys named by @LockKey on memory and Redis, over Express and Fastify',
      async () => {
        const { stdout } = await consumer('nest12').node(await consumer('nest12').bundle('src/main.ts', type));
        expect(stdout).toBe('all checks passed\n');
      },
      TEST_MS,
    );

    test(
      'is refused at load where a template relies on a parameter name, with the cure',
      async () => {
        const { stdout, stderr } = await consumer('nest12').failingNode(await consumer('nest12').bundle('src/unnamed.ts', type));
        expect(stdout).not.toContain('loaded');
        expect(stderr).toMatch(/\bLockConfigurationError\]?: [\w$]+\.credit: the key template 'balance:<customerId>' names <customerId>/);
        expect(stderr).toContain('Use @LockKey() on the parameter, a position such as <0>, or a function of the arguments.');
      },
      TEST_MS,
    );

    test(
      'has one copy of the package, though some of its code imports and some requires it',
      async () => {
        const { stdout, stderr } = await consumer('nest12').node(await consumer('nest12').bundle('bundle/both.mjs', type));
        expect(stdout).toBe('one copy\n');
        expect(stderr).not.toContain('LockWarning');
      },
      TEST_MS,
    );
  });
});

describe('an application without ioredis', () => {
  test(
    'locks on a memory store',
    async () => {
      await consumer('without-ioredis').node('memory.mjs');
    },
    TEST_MS,
  );

  test(
    'is told at bootstrap to install it for a store with a URL',
    async () => {
      const { stdout, stderr } = await consumer('without-ioredis').failingNode('url.mjs');
      expect(stdout).toBe('');
      expect(stderr).toContain(
        'LockConfigurationError: RedisLockStore needs ioredis where it is given no client. Install it, npm install ioredis, or pass a client of node-redis.',
      );
    },
    TEST_MS,
  );
});
