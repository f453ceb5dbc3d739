import { runInThisContext } from 'node:vm';
import { ParameterNames } from '../../../lib/nest/keys/parameter-names';
import { knownNames } from '../../../lib/nest/keys/placeholder';

type Method = (...args: never[]) => unknown;

function namesOf(method: unknown): readonly string[] {
  return knownNames({ given: new Map(), source: new ParameterNames(method as Method) });
}

/** Why the name of the first parameter may not be the author's. */
function doubtOf(names: ParameterNames): string | undefined {
  const [first] = names.bound;
  return first && names.doubt(first);
}

/** The value of an expression of JavaScript, as no compiler has touched it. */
function evaluate(code: string): unknown {
  return runInThisContext(`(${code})`);
}

/** A class as a file of JavaScript has it. */
function classOf(members: string, name = ''): { readonly prototype: { readonly run: Method; readonly function: Method } } {
  return evaluate(`class ${name} { ${members} }`) as { prototype: { run: Method; function: Method } };
}

/** Whether the name of the first parameter is believed to be the author's. */
function isTrusted(members: string, declared?: number, name?: string): boolean {
  const owner = classOf(members, name);
  return doubtOf(new ParameterNames(owner.prototype.run, owner as unknown as Function, declared)) === undefined;
}

describe('parameter names are read from', () => {
  class Sample {
    plain(one: string, two = ', three', ...rest: unknown[]): unknown {
      return [one, two, rest];
    }
    async nested({ a, b }: { a: number; b: number }, list = [(1 + 2) * 3, ')'], last = { x: 1 }): Promise<unknown> {
      return [a, b, list, last];
    }
    // prettier-ignore
    async *commented(/* (first, */ one: string, // second)
      two: string): AsyncGenerator { yield one + two; }
    ['computed(name)'](one: string): string {
      return one;
    }
    expressions(
      pattern = /[,(/]`'"/,
      text = `${[`${pattern.source},)`, 1].join()}(,`,
      make = (one: number, two: number) => ({ one, two }),
    ): unknown {
      return [pattern, text, make];
    }
    classes(Type = class { go(left: number, right: number): number { return left + right; } }, last = 1): unknown { return [Type, last]; } // prettier-ignore
    'a string (one, two)'(only: number): number {
      return only;
    }
  }
  const { prototype } = Sample;
  const getter = Object.getOwnPropertyDescriptor(classOf('get total() { return 1; } set total(amount) {}').prototype, 'total');

  test.each([
    ['a plain method', prototype.plain, ['one', 'two', '...rest']],
    ['a method with destructuring', prototype.nested, ['a', 'b', 'list', 'last']],
    ['patterns', evaluate('({ a, b: { c = 1, ...d }, [e]: f }, [g, , [h]] = [], ...i) => 1'), ['a', 'c', '...d', 'f', 'g', 'h', '...i']],
    ['a generator with comments', prototype.commented, ['one', 'two']],
    ['a computed name', prototype['computed(name)'], ['one']],
    ['a name that is a string', prototype['a string (one, two)'], ['only']],
    ['defaults with regular expressions, templates and arrow functions', prototype.expressions, ['pattern', 'text', 'make']],
    ['defaults that are classes', prototype.classes, ['Type', 'last']],
    ['an arrow function', async (one: string) => one, ['one']],
    ['an arrow function without brackets', evaluate('async one => one'), ['one']],
    ['a function', evaluate('function (one, two) {}'), ['one', 'two']],
    ['an async generator function', evaluate('async function* named(one) {}'), ['one']],
    ['a method that calls super', classOf('run(one) { return super.toString(one); }').prototype.run, ['one']],
    ['a method of an object', evaluate('{ async run(one) {} }.run'), ['one']],
    ['a method that is called as a keyword', classOf('function(one) {} async(two) {}').prototype.function, ['one']],
    ['a private method', evaluate('new class { #run(one) {} get run() { return this.#run; } }().run'), ['one']],
    ['a class with private fields around it', classOf('#a; run(one) { return #a in one; }').prototype.run, ['one']],
    ['a getter', getter?.get, []],
    ['a setter', getter?.set, ['amount']],
    ['a function without any', (): number => 1, []],
    ['a native function', Array.prototype.push, []],
    ['a bound function', prototype.plain.bind(null), []],
    ['a proxy', new Proxy(prototype.plain, {}), []],
    ['a class', Sample, []],
  ])('%s', (_, method, expected) => {
    expect(namesOf(method)).toEqual(expected);
  });
});

describe('a parameter name', () => {
  test.each([
    ['of four letters', 'run(user) {}', undefined],
    ['of two letters, beside a longer variable', 'run(id, to) { const found = id + to; return found; }', undefined],
    ['of two letters, in a class with a longer variable', 'constructor(service) {} run(id, dto) {}', undefined],
    ['of two letters, in a class with a longer variable in a pattern', 'of({ a: [, ...items] }) {} run(id, dto) {}', undefined],
    ['of two letters, the only short one of all that were declared', 'run(id, amount) {}', 2],
    ['of two letters, the only one that was declared', 'run(id) {}', 1],
    ['of two letters, the only one of a method', 'run(id) {}', undefined],
    ['of two letters, the only short one beside destructured ones', 'run(id, { a }, ...r) {}', 3],
    ['with a number', 'run(account1, account2) {}', undefined],
    ['of two letters in a pattern', 'run({ id }) {}', 1],
    ['of two letters in a pattern, beside others that are those of properties', 'run({ id, to, a: { b } }) {}', 1],
    ['of two letters in a pattern, the only one that is renamed', 'run({ customer: id, to }) {}', 1],
    ['of two letters in a pattern, beside what no template can mean', 'run({ id, ...a }, [b]) {}', 2],
    ['of two letters in a pattern, in a class with a longer variable', 'constructor(service) {} run({ customer: id }, to) {}', 2],
    ['of four letters in a pattern', 'run({ id: user, to: b }, a) {}', 2],
  ])('%s is trusted', (_, members, declared) => {
    expect(isTrusted(members, declared)).toBe(true);
  });

  test.each([
    ['id', 'run(id, qty) {}', undefined],
    ['qty', 'async run(qty, id) { return this.repository.save(id, qty); }', 2],
    ['of two letters, beside a local variable of three', 'run(id, to) { const sum = id + to; return sum; }', 2],
  ])('%s is trusted in a class that has its name in its text, beside a name of three letters', (_, members, declared) => {
    expect(isTrusted(members, declared, 'StockService')).toBe(true);
    // A bundler may have given these names, and shortened that of the class.
    expect(isTrusted(members, declared)).toBe(false);
    expect(isTrusted(members, declared, 'aBc')).toBe(false);
  });

  test('of three letters is not trusted in a method that uses all names of one letter', () => {
    const used = Array.from({ length: 54 }, (_, at) => `v${at}`).join();
    expect(isTrusted(`run(id, qty) { return [${used}]; }`, 2, 'StockService')).toBe(false);
    expect(isTrusted(`run(id, qty) { return [${used}]; } eat(a) {}`, 2, 'StockService')).toBe(false);
  });

  test.each([
    ['of one letter', 'constructor(service) {} run(a) {}', 1],
    ['of two letters, beside another short one', 'run(id, to) {}', 2],
    ['of two letters, where another parameter was dropped', 'run(id) {}', 2],
    ['of two letters, where only names of functions are longer', 'run(id, to) { function keptName() {} return class KeptName {}; }', 2],
    ['of two letters, where only generated variables are longer', 'run(id, to) { const _this = this; const __args = 1; }', 2],
    ['of two letters, where eval keeps other names', 'debug(expression) { return eval(expression); } run(id, to) {}', 2],
    ['that a bundler may have given to another one', 'run(user2, user22) { const long = 1; }', 2],
    ['that a bundler may have given to another one of a pattern', 'run({ user2, user: user22 }) { const long = 1; }', 1],
    ['of one letter in a pattern', 'constructor(service) {} run({ a }) {}', 1],
    ['of two letters in a pattern, beside a short parameter', 'run({ id }, to) {}', 2],
    ['of two letters, beside a short renamed one', 'run(id, { customer: to }) {}', 2],
    ['of two letters in a pattern, where another parameter was dropped', 'run({ id }) {}', 2],
  ])('%s is not', (_, members, declared) => {
    expect(isTrusted(members, declared)).toBe(false);
  });

  test('of two letters is not trusted in a function, of which a minifier may have dropped another parameter', () => {
    const method = evaluate('function (id) {}') as Method;
    expect(doubtOf(new ParameterNames(method, undefined, undefined))).toBeDefined();
    expect(doubtOf(new ParameterNames(method, undefined, 1))).toBeUndefined();
  });

  test('of a method that comes from elsewhere is not trusted for the sake of its class', () => {
    const wrapper = classOf('run(id, to) {}').prototype.run;
    const owner = classOf('constructor(service) {}') as unknown as Function;
    expect(doubtOf(new ParameterNames(wrapper, owner, 2))).toBeDefined();
  });
});
