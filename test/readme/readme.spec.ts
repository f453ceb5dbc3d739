import { readPage, sectionOf } from './pages';

const { text } = readPage('README.md');
const words = text.split(/\s+/).filter(Boolean);

/** Where the text first matches, or the end where it never does. */
function first(pattern: RegExp): number {
  const at = text.search(pattern);
  return at < 0 ? text.length : at;
}

test('the README has at most 1,800 words', () => {
  expect(words.length).toBeLessThanOrEqual(1_800);
});

test('it says what the library is in two sentences, and how to install it within the first 80 words', () => {
  const [, what] = /^# [\w-]+\n\n(.*?)\n\n```bash\n/s.exec(text) as unknown as [string, string];
  expect(what.match(/\.(?=\s|$)/g)).toHaveLength(2);
  expect(words.slice(0, 80).join(' ')).toContain('npm install nestjs-distributed-lock');
});

test('the module with a store on one line, and a locked method of three lines, come before anything about fences', () => {
  expect(first(/^.*forRoot\(\{ store: new \w+\(.*\) \}\).*$/m)).toBeLessThan(first(/fenc/i));
  expect(first(/@DistributedLock\('[^']+'\)\n *async [^\n]*\{\n[^\n]*\n *\}\n/)).toBeLessThan(first(/fenc/i));
});

test('its sections are in the order in which a newcomer asks', () => {
  expect([...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)).toEqual([
    'Quick start',
    'Why this one',
    'Beside other libraries',
    'When the lock is busy',
    'When the lease is lost',
    'When the store is away',
    'Guarantees',
    'Limits',
    'Efficiency or correctness',
    'Stores',
    'Documentation',
    'Developing',
  ]);
});

test('why this one is said in at most 150 words, and each reason links to what shows it', () => {
  const why = sectionOf(readPage('README.md'), 'Why this one').replace('## Why this one', '');
  const shown = why.replaceAll(/\]\([^)]*\)/g, ']');
  expect(shown.split(/\s+/).filter((word) => /\w/.test(word)).length).toBeLessThanOrEqual(150);
  const reasons = why.split(/\n(?=- )|\n\n/).filter((reason) => reason.trim() !== '');
  expect(reasons.length).toBeGreaterThan(3);
  expect(reasons.filter((reason) => !reason.includes('](docs/'))).toEqual([]);
});
