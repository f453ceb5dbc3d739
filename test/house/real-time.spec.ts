import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEAST_CLAIM_MS, RealTime } from './real-time';

const files = ['test', 'examples', 'sample-app/test']
  .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('node_modules'))
  .map(({ parentPath, name }) => join(parentPath, name));

const INSTEAD =
  `a machine that stands still breaks it. Play the time (test/support/virtual-time.ts), count or order what happens, or claim ${LEAST_CLAIM_MS} ms ` +
  'and more, beside what passed. Where it cannot fail so, say why at the place: // Real time: …';

const findsIn = (path: string, text: string): string[] =>
  new RealTime(path, text).finds().map(({ line, what }) => `${path}:${line}: ${what}`);

test(`no test claims less than ${LEAST_CLAIM_MS} ms of real time`, () => {
  expect(files.length).toBeGreaterThan(250);
  const finds = files.flatMap((file) => findsIn(file, readFileSync(file, 'utf8')));
  if (finds.length > 0) {
    throw new Error(finds.map((find) => `${find}: ${INSTEAD}`).join('\n'));
  }
  // It parses all tests, which takes a busy machine its time.
}, 240_000);

const found = (text: string): string[] => findsIn('test/a/made-up.spec.ts', text).map((find) => find.replace(/^.*?: /, ''));
const inTest = (text: string): string => `test('x', async () => {\n${text}\n});`;
const under = (ms: number): string[] => [`what passed is claimed to be under ${ms} ms`];

describe('found is', () => {
  test.each([
    ['less than, of what passed', 'expect(performance.now() - startedAt).toBeLessThan(100);', 100],
    ['at most', 'expect(Date.now() - startedAt).toBeLessThanOrEqual(249);', 249],
    ['close to', 'expect(performance.now() - startedAt).toBeCloseTo(30);', 30],
    ['just so many', 'expect(performance.now() - startedAt).toBe(0);', 0],
    ['not more than', 'expect(performance.now() - startedAt).not.toBeGreaterThan(50);', 50],
    ['a comparison', 'expect(performance.now() - startedAt < 80).toBe(true);', 80],
    ['an instant with a name', 'const at = performance.now();\nexpect((await ended) - at).toBeLessThan(20);', 20],
    ['a duration with a name', 'const tookMs = performance.now() - at;\nexpect(tookMs).toBeLessThan(90);', 90],
    ['a duration of something', 'expect((await application.until("closed")).tookMs).toBeLessThan(90);', 90],
    ['the longest of several', 'const all = [];\nall.push(performance.now() - at);\nexpect(Math.max(...all)).toBeLessThan(90);', 90],
    [
      'one of several',
      'const all = [];\nall.push(performance.now() - at);\nconst [, one] = all.toSorted();\nexpect(one).toBeLessThan(90);',
      90,
    ],
    ['a function that measures', 'const ms = () => performance.now() - at;\nexpect(ms()).toBeLessThan(90);', 90],
    ['a limit with a name', 'const LIMIT_MS = 100;\nexpect(performance.now() - at).toBeLessThan(LIMIT_MS);', 100],
    ['a limit that is computed', 'const A = { soon: 300 };\nexpect(performance.now() - at).toBeLessThan(A.soon / 2 - 10);', 140],
  ])('%s', (_, text, ms) => {
    expect(found(inTest(text))).toEqual(under(ms));
  });

  test('a function of another file that measures', () => {
    const text = `import { handOver } from '../support/hand-over';\n${inTest('expect(await handOver(a, b)).toBeLessThan(100);')}`;
    expect(found(text)).toEqual(under(100));
  });

  test('a function that measures by one that is declared below it', () => {
    const functions = 'function ms() { return 2 * once(); }\nfunction once() { return performance.now() - at; }\n';
    expect(found(functions + inTest('expect(ms()).toBeLessThan(100);'))).toEqual(under(100));
  });

  test.each([
    ['until()', "await until('x', () => isSo, 200);", 'until() waits for 200 ms at most'],
    ['a race with a sleep', 'await Promise.race([call, sleep(50).then(() => fail())]);', 'what races with a sleep has 50 ms'],
    ['a race with a timer', 'await Promise.race([call, new Promise((no) => setTimeout(no, 50))]);', 'what races with a sleep has 50 ms'],
    ['a signal', "await once(socket, 'end', { signal: AbortSignal.timeout(100) });", 'what is awaited has 100 ms'],
    ['a test', "test('y', () => call(), 200);", 'a test has 200 ms'],
    ['a lease', "const l = await acquire('k', { ttl: '300ms' });\nexpect(l.isHeld()).toBe(true);", 'a lease of 300 ms is to be held yet'],
  ])('%s that has less', (_, text, what) => {
    expect(found(inTest(text))).toEqual([what]);
  });

  test('its line', () => {
    expect(new RealTime('test/a/made-up.spec.ts', inTest('\nexpect(performance.now() - at).toBeLessThan(1);')).finds()[0]?.line).toBe(3);
  });
});

describe('not found is', () => {
  const claim = 'expect(performance.now() - at).toBeLessThan(100);';

  test.each([
    ['a claim of enough', 'expect(performance.now() - at).toBeLessThan(250);'],
    ['a claim that a stall makes truer', 'expect(performance.now() - at).toBeGreaterThan(50);'],
    ['a limit beside what passed', 'expect(performance.now() - at).toBeLessThan(passedMs + 100);'],
    ['a rate', 'expect(calls / (performance.now() - at)).toBeLessThan(25);'],
    ['a count', 'const at = performance.now();\nexpect(calls.length).toBeLessThan(16);'],
    ['a wait of the library that ends', "await locks.withLock('k', { signal: AbortSignal.timeout(50) }, body);"],
    ['a lease that is to end', "const l = await acquire('k', { ttl: 300 });\nexpect(l.isHeld()).toBe(false);"],
    ['what says why', `// Real time: the clock of the page stands still.\n${claim}`],
    ['what plays its time', `startTime();\n${claim}`],
    ['what has fake timers', `jest.useFakeTimers();\n${claim}`],
  ])('%s', (_, text) => {
    expect(found(inTest(text))).toEqual([]);
  });

  test('what stands in a file, or in a block, whose time is played', () => {
    expect(found(`playTime();\n${inTest(claim)}`)).toEqual([]);
    expect(found(`beforeEach(() => {\n  jest.useFakeTimers();\n});\n${inTest(claim)}`)).toEqual([]);
    expect(found(`describe('x', () => {\nplayTime();\n${inTest(claim)}\n});`)).toEqual([]);
  });

  test('but what stands beside such a block, or says no reason, is', () => {
    expect(found(`describe('x', () => {\nplayTime();\n});\n${inTest(claim)}`)).toEqual(under(100));
    expect(found(inTest(`// Real time:\n${claim}`))).toEqual(under(100));
  });
});
