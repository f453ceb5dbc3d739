import { readdirSync, readFileSync } from 'node:fs';

const readme = readFileSync('README.md', 'utf8');
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };

/** Without indentation and blank lines, so that a block may stand inside a class. */
function lines(text: string): string {
  return `\n${text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .join('\n')}\n`;
}

function blocks(language: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, block]) => block as string);
}

const compiled = readdirSync('test/readme')
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
  .map((name) => lines(readFileSync(`test/readme/${name}`, 'utf8')));

test.each(blocks('ts').map((block) => [block.split('\n')[0], block]))('the block that starts with %p is compiled', (_, block) => {
  expect(compiled.some((file) => file.includes(lines(block as string)))).toBe(true);
});

test('every npm script that the README names exists', () => {
  const named = [...readme.matchAll(/npm (?:run )?(start|test|demo|check|torture|bench\w*)\b/g)].map(([, name]) => name as string);
  expect(new Set(named)).toEqual(new Set(['start', 'test', 'demo', 'bench', 'check', 'torture']));
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
});

test('the figures are those of the last run of the benchmark', () => {
  const { rows } = JSON.parse(readFileSync('bench/results.json', 'utf8')) as {
    rows: { row: string; subject: string; value: number; ratio: number }[];
  };
  const figure = (name: string): { value: number; ratio: number } => {
    const found = rows.find(({ row, subject }) => row === name && subject === 'nestjs-distributed-lock');
    return found ?? { value: NaN, ratio: NaN };
  };
  const measured = readme.slice(readme.indexOf('## Measured'), readme.indexOf('## Install')).replaceAll(/\s+/g, ' ');
  expect(measured).toContain(`takes ${figure('fleet commands').value.toFixed(1)} Redis commands`);
  expect(measured).toContain(`through in ${figure('fleet').ratio.toFixed(2)} × the time`);
  expect(measured).toContain(`after ${figure('hand-over').value.toFixed(1)} ms`);
  expect(measured).toContain(`take ${figure('pair').ratio.toFixed(2)} × the least`);
});

test('the figures of the stores are those of the same run', () => {
  const { rows } = JSON.parse(readFileSync('bench/results.json', 'utf8')) as {
    rows: { row: string; subject: string; value: number; ratio: number }[];
  };
  const page = readFileSync('docs/performance.md', 'utf8');
  const shown = (label: string): string[] =>
    [...(page.split('\n').find((line) => line.startsWith(`| ${label}`)) ?? '').matchAll(/ ([\d.]+) +(?=\|)/g)].map(
      ([, figure]) => figure as string,
    );
  const measured = (row: string, figure: 'value' | 'ratio', digits: number): string[] =>
    rows.filter((one) => one.row === row).map((one) => one[figure].toFixed(digits));
  expect(shown('acquire and release, in µs')).toEqual(measured('stores pair', 'value', 0));
  expect(shown('× its floor')).toEqual(measured('stores pair', 'ratio', 2));
  expect(shown('`hot`')).toEqual(measured('stores hot', 'value', 0));
  expect(shown('`fleet`')).toEqual(measured('stores fleet', 'ratio', 2));
});

test('the smallest ACL is the one that the tests prove to be enough', () => {
  const rights = /ACL SETUSER locker on >secret (.*)$/m.exec(readme)?.[1]?.split(' ') as string[];
  const tested = readFileSync('test/redis/faults.spec.ts', 'utf8');
  for (const right of rights) {
    expect(tested).toContain(`'${right}'`);
  }
  expect(rights.filter((right) => right.startsWith('+'))).toHaveLength(
    [...(/RIGHTS = \[(.*?)\]/s.exec(tested)?.[1] ?? '').matchAll(/'\+/g)].length,
  );
});

test('the rights in PostgreSQL are those that the tests prove to be enough', () => {
  const tested = ['servers', 'row-lock-clients'].map((name) => readFileSync(`test/postgres/${name}.spec.ts`, 'utf8')).join();
  const grants = [...readme.matchAll(/^(GRANT .*) TO app;$/gm)].map(([, grant]) => grant as string);
  expect(grants).toHaveLength(3);
  expect(grants.filter((grant) => !tested.includes(`${grant} TO clerk`))).toEqual([]);
});

test('every link inside the repository leads somewhere', () => {
  for (const [, target] of readme.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
    expect(() => readFileSync(target as string)).not.toThrow();
  }
});
