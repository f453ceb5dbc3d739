import { calledAs, descriptionText, traceIn, type Describe } from '../../../lib/core/words/description';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

class BrokenContext extends Error {
  override readonly name = 'BrokenContext';
}

test.each<[string, readonly unknown[], string]>([
  ['several parts', [{ request: '8f3', tenant: 'acme' }, { trace: TRACE }], `request=8f3 tenant=acme trace=${TRACE}`],
  ['nothing', [undefined, null, {}], ''],
  ['parts without a value', [{ request: undefined, tenant: null, retries: 0, test: false }], 'retries=0 test=false'],
  ['what could be read as another part', [{ request: 'a tenant=acme' }, { text: '"\n)' }], 'request="a tenant=acme" text="\\"\\n)"'],
  ['an empty text', [{ request: '' }], 'request=""'],
  ['what is no text', [{ user: { id: 5 }, log: Date }], 'user="an object of class Object" log="the function Date"'],
  ['a promise', [Promise.resolve({ request: 1 })], 'describe="answered an object of class Promise"'],
  ['a text instead of an object', ['8f3'], `describe="answered '8f3'"`],
])('the text of %s', (_, answers, text) => {
  expect(descriptionText(answers.map((answer) => (() => answer) as Describe))).toBe(text);
});

test('what throws is told by the class of its error, and the others are heard', () => {
  const fails = (): never => {
    throw new BrokenContext('has a secret in it');
  };
  expect(descriptionText([fails, () => ({ request: 1 })])).toBe('describe="threw BrokenContext" request=1');
});

test('a text is cut after 200 characters', () => {
  const text = descriptionText([() => ({ request: 'x'.repeat(500) })]);
  expect(text).toHaveLength(200);
  expect(text).toMatch(/^request=x+…$/);
});

test.each([
  [`host (pid 5) Balances.credit (trace=${TRACE} span=${SPAN} tenant=acme)`, { traceId: TRACE, spanId: SPAN }],
  [`tenant=acme trace=${TRACE}`, { traceId: TRACE, spanId: undefined }],
  [`tenant="trace=${TRACE} span=${SPAN}"`, undefined],
  [`trace=${TRACE}0 span=${SPAN}`, undefined],
  ['trace=1', undefined],
])('the trace in %s', (text, trace) => {
  expect(traceIn(text)).toEqual(trace);
});

test('a call is called as its site, with what it is made for', () => {
  expect(calledAs({ site: 'Balances.credit' })).toBe('Balances.credit');
  expect(calledAs({ site: 'Balances.credit', description: 'request=8f3' })).toBe('Balances.credit (request=8f3)');
});
