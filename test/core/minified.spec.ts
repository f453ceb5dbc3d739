import { minifySync as swc } from '@swc/core';
import { buildSync, transformSync as esbuild, type TransformOptions } from 'esbuild';
import * as fc from 'fast-check';
import { runInThisContext } from 'node:vm';
import { minify as terser } from 'terser';
import { LockConfigurationError } from '../../lib/core/words/errors';
import { compileKeyTemplate } from '../../lib/nest/keys/key-template';
import { ParameterNames } from '../../lib/nest/keys/parameter-names';
import { SEED } from '../support/random';

const { MODEL_RUNS = '40' } = process.env;
const RUNS = Number(MODEL_RUNS);

/** A module of JavaScript that leaves a class in `globalThis.Sample`, and what its author knows of the method. */
interface Sample {
  readonly code: string;
  readonly parameters: readonly string[];
  readonly method: string;
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

/** What renames, but not to short names. */
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

/** Locks with a template that names a parameter: whether it was refused; fails where the key is that of another one. */
function lock(built: string, sample: Sample, name: string, isTyped: boolean): 'right' | 'refused' {
  const owner = load(built);
  const declared = isTyped ? sample.parameters.length : undefined;
  const source = new ParameterNames(methodOf(owner, sample), owner, declared);
  try {
    const keyOf = compileKeyTemplate(`k/<${name}>`, { given: new Map(), source }, 'Sample.method');
    expect(keyOf(sample.parameters.map((_, index) => `value${index}`))).toBe(`k/value${sample.parameters.indexOf(name)}`);
    return 'right';
  } catch (error) {
    if (error instanceof LockConfigurationError) {
      return 'refused';
    }
    throw new Error(`${(error as Error).message}\n${built}`, { cause: error });
  }
}

/** Where a parameter of the author's that is called `name` would be found by its position among the names in the source. */
function isMisleading(built: string, sample: Sample, name: string): boolean {
  const found = new ParameterNames(methodOf(load(built), sample)).names.indexOf(name);
  return found >= 0 && found !== sample.parameters.indexOf(name);
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

const parameter = fc.record({
  name: fc.oneof(fc.constantFrom(...NAMES), fc.stringMatching(/^[a-z]{2}$/)),
  text: fc.constantFrom(...DEFAULTS),
  isDestructured: fc.boolean(),
});

const sample = fc
  .record({
    parameters: fc.uniqueArray(parameter, { minLength: 1, maxLength: 8, selector: ({ name }) => name }),
    fillers: fc.constantFrom(0, 0, 0, 60, 75),
    kind: fc.constantFrom('', 'async ', '* ', 'async * '),
    method: fc.constantFrom(...(Object.keys(METHODS) as (keyof typeof METHODS)[])),
    others: fc.subarray(['constructor(service) { this.service = service; }', 'debug(code) { return eval(code); }', 'static make() {}']),
    variable: fc.constantFrom('', 'const found = [];', 'const q9 = (x) => x;', 'function keptName() {} keptName();'),
    topLevel: fc.subarray(TOP_LEVEL),
    className: fc.constantFrom('', 'SampleService'),
    isStatement: fc.boolean(),
  })
  .map(({ parameters, fillers, kind, method, others, variable, topLevel, className, isStatement }): Sample => {
    const plain = parameters.filter(({ name }) => !RESERVED.has(name));
    const list = plain.map(({ name, text, isDestructured }, at) =>
      isDestructured && at % 3 === 2 ? `{ ${name}, ['x,y']: other${at} = ')' } = {}` : `${name}${text}`,
    );
    const more = Array.from({ length: fillers }, (_, at) => `filler${at}`);
    const uses = [...plain.map(({ name }) => name), ...more].join(', ');
    return {
      method: METHODS[method],
      parameters: [...more, ...plain.map(({ name, isDestructured }, at) => (isDestructured && at % 3 === 2 ? '' : name))],
      code: `${topLevel.map((name) => `const ${name} = globalThis.${name};`).join(' ')}
        globalThis.used = [${topLevel.join()}];
        ${isStatement && className !== '' ? '' : 'globalThis.Sample = '}class ${className} {
          ${others.join(' ')}
          ${kind}${method}(${[...more, ...list].join(', ')}) { ${variable} return [${uses}]; }
        }${isStatement && className !== '' ? ` globalThis.Sample = ${className}` : ''};`,
    };
  })
  .filter(({ parameters }) => parameters.some(Boolean));

const RESERVED = new Set(['as', 'do', 'if', 'in', 'is', 'of', 'eval']);

/** The sample with one of its names changed to one that a build gave to another parameter: the worst that can be. */
function withName(sampled: Sample, at: number, name: string): Sample {
  const old = sampled.parameters[at] as string;
  return {
    ...sampled,
    parameters: sampled.parameters.map((one, index) => (index === at ? name : one)),
    code: sampled.code.replaceAll(new RegExp(`(?<![\\w$])${old.replace('$', '\\$')}(?![\\w$])`, 'g'), () => name),
  };
}

describe('a template that names a parameter', () => {
  test('gets the right one, or is refused at load, whatever the parameters are and whatever built the code', async () => {
    const seen = { right: 0, refused: 0, misleading: 0 };
    await fc.assert(
      fc.asyncProperty(sample, fc.nat(), fc.boolean(), async (sampled, chosen, isTyped) => {
        const positions = [...sampled.parameters.keys()].filter((at) => sampled.parameters[at] !== '');
        const position = positions[chosen % positions.length] as number;
        for (const build of Object.values(BUILDS)) {
          const built = await build(sampled.code);
          seen[lock(built, sampled, sampled.parameters[position] as string, isTyped)]++;
          // The author's name is one that the minifier gives to another parameter.
          const given = new ParameterNames(methodOf(load(built), sampled)).names;
          const taken = given.find((name, at) => at !== position && name.length > 1 && /^\w+$/.test(name) && !sampled.code.includes(name));
          if (taken !== undefined) {
            const worse = withName(sampled, position, taken);
            const rebuilt = await build(worse.code);
            seen.misleading += isMisleading(rebuilt, worse, taken) ? 1 : 0;
            seen[lock(rebuilt, worse, taken, isTyped)]++;
          }
        }
      }),
      { numRuns: RUNS, seed: SEED },
    );
    // Without such cases it would have shown nothing.
    expect(seen.misleading).toBeGreaterThan(RUNS / 4);
    expect(seen.right).toBeGreaterThan(RUNS);
    expect(seen.refused).toBeGreaterThan(RUNS);
  }, 180_000);

  test.each([
    ['two', 2, 300],
    ['three', 3, 5_000],
  ])('is refused where a large bundle has names of %s letters for all parameters', (_, letters, topLevel) => {
    const others = Array.from({ length: topLevel }, (__, at) => `const other${at} = use(); use(other${at}, other${at});`);
    const large = (id: string): Sample => ({
      method: 'run',
      parameters: ['customer', id],
      code: `${others.join('')} globalThis.Sample = class { run(customer, ${id}) { return [customer, ${id}]; } };`,
    });
    const build = (code: string): string => bundle(`const { use } = globalThis; ${code}`, { minify: true });
    const [taken = ''] = new ParameterNames(methodOf(load(build(large('id').code)), large('id'))).names;
    expect(taken).toHaveLength(letters);
    const built = build(large(taken).code);
    expect(isMisleading(built, large(taken), taken)).toBe(true);
    expect(lock(built, large(taken), taken, true)).toBe('refused');
  });

  test('is refused in a script, which keeps the names of its classes, where another function has a hundred variables', () => {
    const locals = Array.from({ length: 100 }, (_, at) => `local${at}`);
    const uses = locals.map((local) => `use(${local}, ${local}, ${local});`).join('');
    const large = (id: string): Sample => ({
      method: 'run',
      parameters: ['customer', id],
      code: `var large = () => { let unused, rare, ${locals.join()}; ${uses} };
        class SampleService { run(customer, ${id}) { return [customer, ${id}]; } } globalThis.Sample = SampleService;`,
    });
    const build = (code: string): string => esbuild(code, { minifyIdentifiers: true, minifyWhitespace: true }).code;
    const [taken = ''] = new ParameterNames(methodOf(load(build(large('id').code)), large('id'))).names;
    expect(taken).toHaveLength(2);
    const built = build(large(taken).code);
    expect(built).toContain('class SampleService');
    expect(isMisleading(built, large(taken), taken)).toBe(true);
    expect(lock(built, large(taken), taken, true)).toBe('refused');
  });

  test('is refused where a bundler gave its name to another parameter, though nothing is minified', () => {
    const sampled: Sample = {
      method: 'run',
      parameters: ['path', 'path2'],
      code: 'const path = 1; use(path); globalThis.Sample = class { run(path, path2) { return [path, path2]; } };',
    };
    const built = bundle(`const { use } = globalThis; ${sampled.code}`, {});
    expect(isMisleading(built, sampled, 'path2')).toBe(true);
    expect(lock(built, sampled, 'path2', true)).toBe('refused');
  });
});
