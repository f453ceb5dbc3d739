import { minifySync as swc } from '@swc/core';
import { buildSync, transformSync as esbuild, type TransformOptions } from 'esbuild';
import * as fc from 'fast-check';
import { runInThisContext } from 'node:vm';
import { minify as terser } from 'terser';
import { LockConfigurationError } from '../../../lib/core/words/errors';
import { compileKeyTemplate } from '../../../lib/nest/keys/key-template';
import { ParameterNames, type ParameterName } from '../../../lib/nest/keys/parameter-names';
import { valueOf } from '../../../lib/nest/keys/placeholder';
import { SEED } from '../../support/random';

const { MODEL_RUNS = '40' } = process.env;
const RUNS = Number(MODEL_RUNS);

/** A module of JavaScript that leaves a class in `globalThis.Sample`, and what its author knows of the method. */
interface Sample {
  readonly code: string;
  readonly method: string;
  /** The names that a template may use; `''` is bound by a pattern that hides the name. */
  readonly names: readonly string[];
  /** Arguments in which the value of `names[n]` is `valueN`. */
  readonly args: readonly unknown[];
}

type Build = (code: string) => string | Promise<string>;

const MINIFIERS: Readonly<Record<string, Build>> = {
  esbuild: (code) => esbuild(code, { minify: true }).code,
  'esbuild, identifiers only': (code) => esbuild(code, { minifyIdentifiers: true }).code,
  'esbuild, as a bundle': (code) => bundle(code, { minify: true }),
  'esbuild, for an older target': (code) => esbuild(code, { minify: true, target: 'es2018', keepNames: true }).code,
  swc: (code) => swc(code, { mangle: true, compress: true, module: true }).code,
  'swc, with white space': (code) => swc(code, { mangle: true, compress: false, format: { beautify: true } }).code,
  terser: async (code) => (await terser(code, { module: true })).code as string,
  'terser, with white space': async (code) => (await terser(code, { keep_fnames: true, format: { beautify: true } })).code as string,
  'terser, with the names of classes': async (code) => (await terser(code, { module: true, keep_classnames: true })).code as string,
  'swc, with the names of classes': (code) => swc(code, { mangle: { keep_classnames: true }, compress: false, module: true }).code,
  'terser, without unused parameters': async (code) => (await terser(code, { compress: { keep_fargs: false } })).code as string,
};

/** Builds that rename, but not to short names. */
const BUILDS: Readonly<Record<string, Build>> = {
  ...MINIFIERS,
  'no tool': (code) => code,
  'esbuild, as a bundle that is not minified': (code) => bundle(code, {}),
};

function bundle(contents: string, options: TransformOptions): string {
  const { outputFiles } = buildSync({ stdin: { contents }, bundle: true, write: false, format: 'iife', ...(options as object) });
  return outputFiles[0]?.text as string;
}

function load(code: string): Function {
  const sandbox: { Sample?: Function; use: () => void } = { use: () => undefined };
  (runInThisContext(`(globalThis) => {${code}\n}`) as (sandbox: object) => void)(sandbox);
  return sandbox.Sample as Function;
}

function methodOf(owner: Function, { method }: Sample): Function {
  const { prototype } = owner as unknown as { prototype: Record<string, Function> };
  return prototype[method] as Function;
}

function namesOf(built: string, sample: Sample): readonly ParameterName[] {
  return new ParameterNames(methodOf(load(built), sample)).bound;
}

/** Locks with a template that names a parameter: whether it was refused; fails where the key is that of another one. */
function lock(built: string, sample: Sample, name: string, isTyped: boolean): 'right' | 'refused' {
  const owner = load(built);
  const declared = isTyped ? sample.args.length : undefined;
  const source = new ParameterNames(methodOf(owner, sample), owner, declared);
  try {
    const keyOf = compileKeyTemplate(`k/<${name}>`, { given: new Map(), source }, 'Sample.method');
    expect(keyOf(sample.args)).toBe(`k/value${sample.names.indexOf(name)}`);
    return 'right';
  } catch (error) {
    if (error instanceof LockConfigurationError) {
      return 'refused';
    }
    throw new Error(`${(error as Error).message}\n${sample.code}\n${built}`, { cause: error });
  }
}

/** Where a name of the author's would be found in the source, and have another value there. */
function isMisleading(built: string, sample: Sample, name: string): boolean {
  const found = namesOf(built, sample).find((bound) => bound.name === name);
  return found !== undefined && valueOf({ ...found, shown: '' }, sample.args) !== `value${sample.names.indexOf(name)}`;
}

const TOP_LEVEL = ['id', 'dto', 'tenant', 'path2', 'user'];
const NAMES = [
  'id',
  'to',
  'dto',
  'id2',
  'id22',
  'path',
  'path2',
  'path22',
  'tenant',
  'user',
  'customerId',
  'amount',
  'straße',
  '$scope',
  'a',
  'e',
];
const DEFAULTS = [
  '',
  ' = /[,(/]["\'`]/',
  ' = `,${`(${[1, 2]}`},`',
  " = ', id, dto'",
  ' = (x, y = [1, 2]) => ({ x, y })',
  ' = class { go(left, right) { return left + right; } }',
  ' /* , (tenant, */ = 1 // , user\n',
  ' = [1, 2].map((one) => one / 2)',
];
const METHODS = {
  run: 'run',
  "['computed (one, two)']": 'computed (one, two)',
  "'text (one, two)'": 'text (one, two)',
};

/** A name of a method, and how its parameters bind it: one beside the other, or joined in a pattern. */
interface Bind {
  readonly name: string;
  readonly form: 'plain' | 'shorthand' | 'renamed' | 'nested' | 'array' | 'computed';
  readonly property: string;
  readonly isJoined: boolean;
  readonly text: string;
  readonly isUsed: boolean;
}

const bind: fc.Arbitrary<Bind> = fc.record({
  name: fc.oneof(fc.constantFrom(...NAMES), fc.stringMatching(/^[a-z]{2}$/)),
  form: fc.constantFrom('plain', 'plain', 'plain', 'shorthand', 'shorthand', 'renamed', 'nested', 'array', 'computed'),
  property: fc.constantFrom(...NAMES),
  isJoined: fc.boolean(),
  text: fc.constantFrom(...DEFAULTS),
  isUsed: fc.constantFrom(true, true, true, false),
});

/** A class as its author wrote it. */
const written = fc
  .record({
    binds: fc.uniqueArray(bind, { minLength: 1, maxLength: 8, selector: ({ name }) => name }),
    fillers: fc.constantFrom(0, 0, 0, 60, 75),
    kind: fc.constantFrom('', 'async ', '* ', 'async * '),
    method: fc.constantFrom(...(Object.keys(METHODS) as (keyof typeof METHODS)[])),
    others: fc.subarray(['constructor(service) { this.service = service; }', 'debug(code) { return eval(code); }', 'static make() {}']),
    variable: fc.constantFrom('', 'const found = [];', 'const q9 = (x) => x;', 'function keptName() {} keptName();'),
    topLevel: fc.subarray(TOP_LEVEL),
    className: fc.constantFrom('', 'SampleService'),
    isStatement: fc.boolean(),
  })
  .map(({ binds, fillers, ...others }) => {
    const filler = { form: 'plain', property: '', isJoined: false, text: '', isUsed: true } as const;
    const more = Array.from({ length: fillers }, (_, at): Bind => ({ ...filler, name: `filler${at}` }));
    return { ...others, binds: [...more, ...binds.filter(({ name }) => !RESERVED.has(name))] };
  });

type Written = typeof written extends fc.Arbitrary<infer Value> ? Value : never;

const RESERVED = new Set(['as', 'do', 'if', 'in', 'is', 'of', 'eval']);
const HIDDEN = new Set(['array', 'computed']);

function sampleOf({ binds, kind, method, others, variable, topLevel, className, isStatement }: Written): Sample {
  const parameters: { readonly texts: string[]; readonly arg: unknown }[] = [];
  binds.forEach(({ name, form, property, isJoined, text }, at) => {
    const value = `value${at}`;
    if (form === 'plain') {
      parameters.push({ texts: [`${name}${text}`], arg: value });
      return;
    }
    const last = parameters.at(-1);
    const joined = isJoined && typeof last?.arg === 'object' ? last : { texts: [], arg: {} };
    if (joined !== last) {
      parameters.push(joined);
    }
    const { texts, arg } = joined as { texts: string[]; arg: Record<string, unknown> };
    const wanted = form === 'shorthand' ? name : property;
    const key = wanted in arg ? `${wanted}${at}` : wanted;
    arg[key] = form === 'nested' ? { inner: value } : form === 'array' ? [value] : value;
    const forms = {
      shorthand: key === name ? `${name}${text}` : `${key}: ${name}${text}`,
      renamed: `${key}: ${name}${text}`,
      nested: `${key}: { inner: ${name}${text} }`,
      array: `${key}: [${name}${text}]`,
      computed: `['${key}']: ${name}${text}`,
    };
    texts.push(forms[form]);
  });
  const list = parameters.map(({ texts, arg }, at) =>
    typeof arg === 'string' ? texts.join() : `{ ${texts.join(', ')}, ['x,y']: other${at} = ')' }${at % 2 === 0 ? '' : ' = {}'}`,
  );
  const uses = binds.filter(({ isUsed }) => isUsed).map(({ name }) => name);
  return {
    method: METHODS[method],
    names: binds.map(({ name, form }) => (HIDDEN.has(form) ? '' : name)),
    args: parameters.map(({ arg }) => arg),
    code: `${topLevel.map((name) => `const ${name} = globalThis.${name};`).join(' ')}
        globalThis.used = [${topLevel.join()}];
        ${isStatement && className !== '' ? '' : 'globalThis.Sample = '}class ${className} {
          ${others.join(' ')}
          ${kind}${method}(${list.join(', ')}) { ${variable} return [${uses.join(', ')}]; }
        }${isStatement && className !== '' ? ` globalThis.Sample = ${className}` : ''};`,
  };
}

/**
 * The class with one of its names changed to one that a build gave to another parameter: the worst that can be. In
 * `asShorthand`, that other one is also a property of this name, so that the build writes `{ name }`.
 */
function withName(given: Written, at: number, name: string, asShorthand?: number): Written {
  const changed = given.binds.map((one, index): Bind => {
    if (index === at) {
      return { ...one, name };
    }
    return index === asShorthand ? { ...one, form: 'renamed', property: name } : one;
  });
  return { ...given, binds: changed };
}

describe('a template that names a parameter', () => {
  test('gets the right one, or is refused at load, whatever the parameters are and whatever built the code', async () => {
    const seen = { right: 0, refused: 0, misleading: 0, misleadingShorthand: 0, shorthand: 0 };
    await fc.assert(
      fc.asyncProperty(written, fc.nat(), fc.boolean(), async (given, chosen, isTyped) => {
        const sample = sampleOf(given);
        const positions = [...sample.names.keys()].filter((at) => sample.names[at] !== '');
        fc.pre(positions.length > 0);
        const position = positions[chosen % positions.length] as number;
        for (const build of Object.values(BUILDS)) {
          const built = await build(sample.code);
          const outcome = lock(built, sample, sample.names[position] as string, isTyped);
          seen[outcome]++;
          seen.shorthand += outcome === 'right' && given.binds[position]?.form === 'shorthand' ? 1 : 0;
          // The author's name is one that the minifier gives to another parameter.
          const taken = namesOf(built, sample).find((bound) => {
            const isOther = valueOf({ ...bound, shown: '' }, sample.args) !== `value${position}`;
            return isOther && /^\w{2,}$/.test(bound.name) && !sample.code.includes(bound.name);
          });
          if (taken === undefined) {
            continue;
          }
          const { name } = taken;
          const other = sample.names.findIndex((_, at) => valueOf({ ...taken, shown: '' }, sample.args) === `value${at}`);
          for (const shorthand of [undefined, other]) {
            const worse = sampleOf(withName(given, position, name, shorthand));
            const rebuilt = await build(worse.code);
            seen[shorthand === undefined ? 'misleading' : 'misleadingShorthand'] += isMisleading(rebuilt, worse, name) ? 1 : 0;
            seen[lock(rebuilt, worse, name, isTyped)]++;
          }
        }
      }),
      { numRuns: RUNS, seed: SEED },
    );
    // Without such cases it would have shown nothing.
    expect(seen.misleading).toBeGreaterThan(RUNS / 4);
    expect(seen.misleadingShorthand).toBeGreaterThan(RUNS / 4);
    expect(seen.right).toBeGreaterThan(RUNS);
    expect(seen.shorthand).toBeGreaterThan(RUNS / 10);
    expect(seen.refused).toBeGreaterThan(RUNS);
  }, 180_000);

  /** The parameters of a method that gets a customer and the id, which a build gives the name of the other. */
  const FORMS: Readonly<Record<string, (id: string) => Pick<Sample, 'args'> & { readonly list: string }>> = {
    'a parameter': (id) => ({ list: `customer, ${id}`, args: ['value0', 'value1'] }),
    'one in a pattern': (id) => ({ list: `customer, { order: ${id} }`, args: ['value0', { order: 'value1' }] }),
    'one in the pattern of another': (id) => ({
      list: `{ customer, order: { of: ${id} } }`,
      args: [{ customer: 'value0', order: { of: 'value1' } }],
    }),
  };

  describe.each(Object.entries(FORMS))('%s', (_form, made) => {
    test.each([
      ['two', 2, 300],
      ['three', 3, 5_000],
    ])('is refused where a large bundle has names of %s letters for all parameters', (_, letters, topLevel) => {
      const others = Array.from({ length: topLevel }, (__, at) => `const other${at} = use(); use(other${at}, other${at});`);
      const large = (id: string): Sample => {
        const { list, args } = made(id);
        const code = `${others.join('')} globalThis.Sample = class { run(${list}) { return [customer, ${id}]; } };`;
        return { method: 'run', names: ['customer', id], args, code };
      };
      const build = (code: string): string => bundle(`const { use } = globalThis; ${code}`, { minify: true });
      const [{ name: taken }] = namesOf(build(large('id').code), large('id')) as [ParameterName];
      expect(taken).toHaveLength(letters);
      const built = build(large(taken).code);
      expect(isMisleading(built, large(taken), taken)).toBe(true);
      expect(lock(built, large(taken), taken, true)).toBe('refused');
    });
  });

  test('is refused in a script, which keeps the names of its classes, where another function has a hundred variables', () => {
    const locals = Array.from({ length: 100 }, (_, at) => `local${at}`);
    const uses = locals.map((local) => `use(${local}, ${local}, ${local});`).join('');
    const large = (id: string): Sample => ({
      method: 'run',
      names: ['customer', id],
      args: ['value0', 'value1'],
      code: `var large = () => { let unused, rare, ${locals.join()}; ${uses} };
        class SampleService { run(customer, ${id}) { return [customer, ${id}]; } } globalThis.Sample = SampleService;`,
    });
    const build = (code: string): string => esbuild(code, { minifyIdentifiers: true, minifyWhitespace: true }).code;
    const [{ name: taken }] = namesOf(build(large('id').code), large('id')) as [ParameterName];
    expect(taken).toHaveLength(2);
    const built = build(large(taken).code);
    expect(built).toContain('class SampleService');
    expect(isMisleading(built, large(taken), taken)).toBe(true);
    expect(lock(built, large(taken), taken, true)).toBe('refused');
  });

  test('is refused where a bundler gave its name to another parameter, though nothing is minified', () => {
    const sampled: Sample = {
      method: 'run',
      names: ['path', 'path2'],
      args: ['value0', 'value1'],
      code: 'const path = 1; use(path); globalThis.Sample = class { run(path, path2) { return [path, path2]; } };',
    };
    const built = bundle(`const { use } = globalThis; ${sampled.code}`, {});
    expect(isMisleading(built, sampled, 'path2')).toBe(true);
    expect(lock(built, sampled, 'path2', true)).toBe('refused');
  });
});
