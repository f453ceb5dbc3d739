import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { codeLines } from '../../scripts/size.mjs';
import { importsIn, permissionFor, read, roomOf, ROOMS, sources, type Import } from './import-table';

const imports = sources().flatMap((file) => importsIn(file, read(file)).map((each) => ({ file, each, room: roomOf(file) as string })));

/** The imports of a file that its room may not have. */
const refusedIn = (file: string, text: string): string[] =>
  importsIn(file, text)
    .filter((each) => permissionFor(roomOf(file) as string, each) === undefined)
    .map(({ name }) => name);

describe('the table of imports', () => {
  test('has a room for each file, and each file imports what its room may', () => {
    expect(imports.length).toBeGreaterThan(1_000);
    const refused = imports.filter(({ each, room }) => permissionFor(room, each) === undefined);
    expect(refused.map(({ file, each, room }) => `${file} (${room}) imports ${each.name}`)).toEqual([]);
  });

  test('permits nothing that no file needs', () => {
    const used = new Set(imports.map(({ each, room }) => `${room}: ${permissionFor(room, each)}`));
    const given = Object.entries(ROOMS).flatMap(([room, entries]) =>
      entries
        .split(' ')
        .filter(Boolean)
        .map((entry) => `${room}: ${entry}`),
    );
    expect(given.filter((each) => !used.has(each))).toEqual([]);
  });

  test('has no room that is gone', () => {
    expect(Object.keys(ROOMS).filter((room) => !sources().some((file) => roomOf(file) === room))).toEqual([]);
  });
});

describe('the checker finds a planted import', () => {
  test.each([
    ['of a name', `import { Lease } from '../leases/lease.js';`],
    ['of a default', `import lease from '../leases/lease.js';`],
    ['of all', `import * as lease from '../leases/lease.js';`],
    ['for its effect', `import '../leases/lease.js';`],
    ['of a type', `import type { Lease } from '../leases/lease.js';`],
    ['of a type among names', `import { type Lease } from '../leases/lease.js';`],
    ['that is exported', `export { Lease } from '../leases/lease.js';`],
    ['of which all is exported', `export * from '../leases/lease.js';`],
    ['of a type that is exported', `export type { Lease } from '../leases/lease.js';`],
    ['in a type', `export type Lease = import('../leases/lease.js').Lease;`],
    ['at run time', `export const load = () => import('../leases/lease.js');`],
    ['over several lines', `import {\n  Lease,\n} from '../leases/lease.js';`],
  ])('%s', (_kind, text) => {
    expect(refusedIn('lib/core/seam/planted.ts', text)).toEqual(['lib/core/leases/lease']);
  });

  const refuses = (room: string, name: string, isType = false): boolean => permissionFor(room, { name, isType }) === undefined;

  test.each(Object.keys(ROOMS))('of a package that is not of %s', (room) => {
    const packages = ['@nestjs/common', 'rxjs', 'ioredis', 'pg', 'mysql2', 'redis', 'prom-client', '@opentelemetry/api', 'preact'];
    const may = packages.filter((name) => !refuses(room, name));
    expect(may).toEqual(packages.filter((name) => ROOMS[room]?.split(' ').includes(name)));
    expect(refuses(room, 'left-pad')).toBe(true);
  });

  test.each([
    ['a storey of core, of the storey above it', 'lib/core/calls', 'lib/core/leases/lease'],
    ['core, of Nest', 'lib/core/entering', 'lib/nest/lock.service'],
    ['core, of a store', 'lib/core/entering', 'lib/kit/lock-table'],
    ['what looks, of a value of what it looks at', 'lib/core/watching', 'lib/core/leases/lease'],
    ['a store, of another store', 'lib/mysql', 'lib/postgres/schema'],
    ['a room of a store, of another room', 'lib/mysql/row-lock', 'lib/mysql/connections/session'],
    ['a store, of Nest', 'lib/redis', 'lib/nest/lock.module'],
    ['the locks of one store, of a store', 'lib/locks.ts', 'lib/kit/lock-table'],
    ['the library, of the console', 'lib', 'console/cli/main'],
    ['decorators, of the module', 'lib/nest/methods', 'lib/nest/lock.module'],
    ['a rule of the contract, of core', 'lib/contract/rules', 'lib/core/leases/lease'],
    ['the command line, of Nest', 'console/cli', 'lib/nest/lock.service'],
    ['the page, of its front end', 'console/page', 'console/page/app/main'],
    ['the page, of a store', 'console/page', 'lib/redis/redis-lock-store'],
    ['the front end, of Node', 'console/page/app', 'node:fs'],
    ['the front end, of a value of the server', 'console/page/app', 'console/page/snapshot'],
  ])('%s', (_what, room, name) => {
    expect(ROOMS).toHaveProperty([room]);
    expect(refuses(room, name)).toBe(true);
  });

  test('and takes a type where types are permitted', () => {
    const type: Import = { name: 'lib/core/leases/lease', isType: true };
    expect(permissionFor('lib/core/watching', type)).toBe('type:lib/core/leases');
  });
});

const foldersOf = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name));

/** A folder with those in it, and how many files are in each. */
const sizesOf = (folder: string): [string, number][] => [
  [folder, readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).length],
  ...foldersOf(folder).flatMap(sizesOf),
];

test('no folder of the library has more than 17 files, and no file of core more than 245 lines of code', () => {
  expect(sizesOf('lib').filter(([, files]) => files > 17)).toEqual([]);
  expect(sources().filter((file) => file.startsWith('lib/core/') && codeLines(read(file)) > 245)).toEqual([]);
});
