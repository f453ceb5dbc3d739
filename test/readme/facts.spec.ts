import { readFileSync } from 'node:fs';
import { rowLockSql } from '../../lib/mysql/row-lock/row-lock-table';
import { blocksOf, readPage, sectionOf } from './pages';

interface Row {
  readonly row: string;
  readonly subject: string;
  readonly value: number;
  readonly ratio: number;
}

const results = JSON.parse(readFileSync('bench/results.json', 'utf8')) as { rows: Row[]; redis: string; postgres: string };
const performance = readPage('docs/performance.md');

test('the figures are those of the last run of the benchmark', () => {
  const figure = (name: string): { value: number; ratio: number } => {
    const found = results.rows.find(({ row, subject }) => row === name && subject === 'nestjs-distributed-lock');
    return found ?? { value: NaN, ratio: NaN };
  };
  const short = sectionOf(performance, 'In short').replaceAll(/\s+/g, ' ');
  expect(short).toContain(`takes ${figure('fleet commands').value.toFixed(1)} Redis commands`);
  expect(short).toContain(`through in ${figure('fleet').ratio.toFixed(2)} × the time`);
  expect(short).toContain(`after ${figure('hand-over').value.toFixed(1)} ms`);
  expect(short).toContain(`take ${figure('one caller').ratio.toFixed(2)} × the least`);
});

test('the page of figures has at most 700 words', () => {
  expect(performance.text.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(700);
});

test('the figures of the stores are those of the same run', () => {
  const shown = (label: string): string[] =>
    [...(performance.text.split('\n').find((line) => line.startsWith(`| ${label}`)) ?? '').matchAll(/ ([\d.]+) +(?=\|)/g)].map(
      ([, figure]) => figure as string,
    );
  const measured = (row: string, figure: 'value' | 'ratio', digits: number): string[] =>
    results.rows.filter((one) => one.row === row).map((one) => one[figure].toFixed(digits));
  expect(shown('acquire and release, in µs')).toEqual(measured('stores pair', 'value', 0));
  expect(shown('× its floor')).toEqual(measured('stores pair', 'ratio', 2));
  expect(shown('`hot`')).toEqual(measured('stores hot', 'value', 0));
  expect(shown('`fleet`')).toEqual(measured('stores fleet', 'ratio', 2));
});

test('the smallest ACL is the one that the tests prove to be enough', () => {
  const rights = /ACL SETUSER locker on >secret (.*)$/m.exec(readPage('docs/stores/redis.md').text)?.[1]?.split(' ') as string[];
  const tested = readFileSync('test/redis/refusals.spec.ts', 'utf8');
  for (const right of rights) {
    expect(tested).toContain(`'${right}'`);
  }
  expect(rights.filter((right) => right.startsWith('+'))).toHaveLength(
    [...(/RIGHTS = \[(.*?)\]/s.exec(tested)?.[1] ?? '').matchAll(/'\+/g)].length,
  );
});

test('the rights in PostgreSQL are those that the tests prove to be enough', () => {
  const tested = ['servers.long', 'row-lock-clients', 'shared'].map((name) => readFileSync(`test/postgres/${name}.spec.ts`, 'utf8')).join();
  const { text } = readPage('docs/stores/postgres.md');
  const grants = [...text.matchAll(/^(GRANT .*) TO app;$/gm)].map(([, grant]) => grant as string);
  expect(grants).toHaveLength(4);
  expect(grants.filter((grant) => !tested.includes(`${grant} TO clerk`) && !tested.includes(`${grant} TO writer`))).toEqual([]);
});

test('the table and the rights of row locks in MySQL are those of the code and of the tests', () => {
  const page = readPage('docs/stores/mysql-row-lock.md');
  const [table, grant] = blocksOf(page, 'sql');
  expect(table).toBe(rowLockSql());
  const tested = readFileSync('test/mysql/row-lock-clients.long.spec.ts', 'utf8').replaceAll('${DATABASE}', 'app');
  expect(tested).toContain(grant?.replace(/ TO app;\n$/, ' TO clerk'));
});

describe('the versions that are called tested', () => {
  type Packages = Record<string, { version?: string }>;
  const [ours, ofTests] = ['package-lock.json', 'test/package-lock.json'].map(
    (file) => (JSON.parse(readFileSync(file, 'utf8')) as { packages: Packages }).packages,
  );
  const packages: Packages = { ...ofTests, ...ours };
  const { dependencies } = JSON.parse(readFileSync('test/package/fixtures/nest11/package.json', 'utf8')) as {
    dependencies: Record<string, string>;
  };

  /** The versions in the row of a table that begins with `what`. */
  function shown(path: string, what: string): string[] {
    const row =
      readPage(path)
        .text.split('\n')
        .find((line) => line.startsWith(`| ${what} `)) ?? '';
    return row.match(/\d+\.\d+(\.\d+)?/g) ?? [];
  }

  const installed = (name: string): string => packages[`node_modules/${name}`]?.version ?? 'none';

  test.each([
    ['docs/stores/redis.md', 'Redis', [results.redis]],
    ['docs/choosing-a-store.md', 'Redis', [results.redis, '8.0.6']],
    ['docs/stores/redis.md', 'ioredis', [installed('ioredis'), (dependencies['ioredis'] as string).replace('^', '')]],
    ['docs/stores/postgres.md', 'PostgreSQL', [results.postgres]],
    ['docs/stores/postgres.md', '`pg`', [installed('pg')]],
    ['docs/stores/postgres.md', 'PGlite', [installed('@electric-sql/pglite')]],
    ['docs/stores/postgres.md', 'TypeORM, Prisma', [installed('typeorm'), installed('@prisma/adapter-pg')]],
    ['docs/stores/postgres.md', 'knex, drizzle', [installed('knex'), installed('drizzle-orm')]],
    ['docs/stores/postgres.md', 'MikroORM', [installed('@mikro-orm/postgresql')]],
    ['docs/stores/mysql-row-lock.md', '`mysql2`', [installed('mysql2')]],
    ['docs/stores/mysql-row-lock.md', 'TypeORM', [installed('typeorm')]],
    ['docs/stores/mysql-row-lock.md', 'knex, drizzle', [installed('knex'), installed('drizzle-orm')]],
  ])('in %s, of %s, are those of the repository', (path, what, versions) => {
    expect(shown(path, what)).toEqual(versions);
  });

  test('of servers are those of the tests, and those that may not fail in the workflow', () => {
    const majors = (versions: readonly string[]): string[] => versions.map((version) => version.split('.', 1)[0] as string).toSorted();
    const workflow = readFileSync('.github/workflows/servers.yml', 'utf8');
    const seen = (image: string): string[] =>
      [...workflow.matchAll(new RegExp(`image: '${image}:([\\d.]+)', seen: true`, 'g'))].map(([, version]) => version as string);
    const [postgres = '', ...others] = shown('docs/choosing-a-store.md', 'PostgreSQL');
    expect(postgres).toBe(results.postgres);
    expect(majors([postgres, ...others])).toEqual(majors(seen('postgres')));
    expect(majors(shown('docs/choosing-a-store.md', 'Redis').slice(1))).toEqual(majors(seen('redis')));
    expect(majors(shown('docs/choosing-a-store.md', 'MariaDB').slice(1))).toEqual(majors(seen('mariadb')));
    expect(majors(shown('docs/choosing-a-store.md', 'MySQL'))).toEqual(majors(seen('mysql')));
    expect(majors(shown('docs/choosing-a-store.md', 'Valkey'))).toEqual(majors(seen('valkey/valkey')));
    for (const product of ['MariaDB', 'MySQL']) {
      expect(shown('docs/choosing-a-store.md', product)).toEqual(shown('docs/stores/mysql.md', product));
    }
  });
});
