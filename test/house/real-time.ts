import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/** Machines stand still for this long: a claim of less is one about the machine. */
export const LEAST_CLAIM_MS = 250;
/** A lease that is to be held through a stall, and through the renewal after it. */
export const LEAST_LEASE_MS = 1_000;

/**
 * The beginning of a comment at the place that gives the reason why a claim cannot fail by a machine that stands still.
 */
const REASON = /\/\/ Real time: \S+ \S+/;
const UPPER = /^toBe(LessThan(OrEqual)?|CloseTo)?$/;
const NOT_UPPER = /^toBeGreaterThan(OrEqual)?$/;
const CLOCK = /^(performance|Date)\.now$/;
const DURATION = /(took|elapsed|longest|waited|lasted|passed|delay)\w*ms$|^(tookMs|waitedMs)$/i;
const MEASURING = /^(time|duration)Of$/;
const INSTALLS = /^(playTime|startTime|jest\.useFakeTimers|vi\.useFakeTimers)$/;
const BLOCKS = /^(describe|test|it|beside|testInWorld)(\.|$)/;
const CLAIMED_WHILE = /^(once|on|events\.once|fetch|sleep)$/;

/** A claim of real time under its least, with its line. */
export interface Find {
  readonly line: number;
  readonly what: string;
}

const within = (node: ts.Node, matches: (inner: ts.Node) => boolean): boolean =>
  matches(node) || (ts.forEachChild(node, (child) => within(child, matches) || undefined) ?? false);

/** The name by which something is called: `test.each` of `test.each([…])('…', …)`. */
const calleeOf = (call: ts.CallExpression): string => nameOf(call.expression);

function nameOf(node: ts.Expression): string {
  if (ts.isIdentifier(node)) {
    return node.text;
  }
  if (ts.isPropertyAccessExpression(node)) {
    return `${nameOf(node.expression)}.${node.name.text}`;
  }
  return ts.isCallExpression(node) ? calleeOf(node) : '';
}

/** The facts of a file about numbers and about time, before its claims are read. */
class Names {
  /** Variables that hold what a clock said. */
  readonly #instants = new Set<string>();
  /** Variables that hold what passed between two of those. */
  readonly #durations = new Set<string>();
  /** Functions that answer what passed. */
  readonly #measuring = new Set<string>();
  readonly #numbers = new Map<string, ts.Expression>();
  /** In which file beside it a name is declared. */
  readonly #imports: ReadonlyMap<string, string>;

  constructor(path: string, source: ts.SourceFile) {
    this.#imports = importsOf(path, source);
    // A name that is found is used by code above it, too.
    for (let before = -1; before < this.#count;) {
      before = this.#count;
      this.#read(source);
    }
  }

  get #count(): number {
    return this.#instants.size + this.#durations.size + this.#measuring.size;
  }

  /** Whether an expression is what passed by a clock, or is computed from that. */
  isMeasured(node: ts.Node): boolean {
    // A value that is divided by a duration is a rate.
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.SlashToken) {
      return this.isMeasured(node.left);
    }
    return this.#isWhatPassed(node) || (ts.forEachChild(node, (child) => this.isMeasured(child) || undefined) ?? false);
  }

  #isWhatPassed(inner: ts.Node): boolean {
    if (ts.isBinaryExpression(inner) && inner.operatorToken.kind === ts.SyntaxKind.MinusToken) {
      return this.#isInstant(inner.left) || this.#isInstant(inner.right);
    }
    if (ts.isIdentifier(inner)) {
      return this.#durations.has(inner.text);
    }
    if (ts.isPropertyAccessExpression(inner)) {
      return DURATION.test(inner.name.text);
    }
    return ts.isCallExpression(inner) && this.#measures(calleeOf(inner));
  }

  /** The value of a number that the source says, also where it is computed from constants. */
  valueOf(node: ts.Expression): number | undefined {
    if (ts.isNumericLiteral(node)) {
      return Number(node.text);
    }
    if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) {
      return this.valueOf(node.expression);
    }
    if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.MinusToken) {
      const value = this.valueOf(node.operand);
      return value === undefined ? undefined : -value;
    }
    if (ts.isIdentifier(node) || ts.isPropertyAccessExpression(node)) {
      return this.#constant(node.getText());
    }
    return ts.isBinaryExpression(node) ? this.#computed(node) : undefined;
  }

  #computed({ left, right, operatorToken: { kind } }: ts.BinaryExpression): number | undefined {
    const [first, second] = [this.valueOf(left), this.valueOf(right)];
    if (first === undefined || second === undefined) {
      return undefined;
    }
    const by: Partial<Record<ts.SyntaxKind, number>> = {
      [ts.SyntaxKind.PlusToken]: first + second,
      [ts.SyntaxKind.MinusToken]: first - second,
      [ts.SyntaxKind.AsteriskToken]: first * second,
      [ts.SyntaxKind.SlashToken]: first / second,
    };
    return by[kind];
  }

  #constant(name: string): number | undefined {
    const own = this.#numbers.get(name);
    const declaring = own ? undefined : this.#declaring(name);
    return own ? this.valueOf(own) : declaring && declaring.#constant(name);
  }

  #measures(name: string): boolean {
    const declaring = this.#declaring(name);
    return MEASURING.test(name) || this.#measuring.has(name) || (declaring ? declaring.#measures(name) : false);
  }

  #declaring(name: string): Names | undefined {
    const file = this.#imports.get(name.replace(/\..*/, ''));
    return file === undefined ? undefined : namesOf(file);
  }

  #isInstant(node: ts.Node): boolean {
    return within(
      node,
      (inner) => (ts.isCallExpression(inner) && CLOCK.test(calleeOf(inner))) || (ts.isIdentifier(inner) && this.#instants.has(inner.text)),
    );
  }

  #read(node: ts.Node): void {
    ts.forEachChild(node, (child) => this.#read(child));
    if (ts.isVariableDeclaration(node) && node.initializer) {
      this.#declare(node.name, node.initializer);
    }
    if (ts.isFunctionDeclaration(node) && node.name && node.body && this.#returnsWhatPassed(node.body)) {
      this.#measuring.add(node.name.text);
    }
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken && ts.isIdentifier(node.left)) {
      this.#take(node.left.text, node.right);
    }
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) && node.expression.name.text === 'push') {
      node.arguments.forEach((value) => this.#take(node.expression.getChildAt(0).getText(), value));
    }
  }

  #declare(name: ts.BindingName, value: ts.Expression): void {
    if (ts.isFunctionLike(value)) {
      if ('body' in value && value.body && this.#returnsWhatPassed(value.body)) {
        this.#measuring.add(name.getText());
      }
      return;
    }
    const object = ts.isAsExpression(value) ? value.expression : value;
    if (ts.isObjectLiteralExpression(object)) {
      for (const property of object.properties.filter(ts.isPropertyAssignment)) {
        this.#numbers.set(`${name.getText()}.${property.name.getText()}`, property.initializer);
      }
    } else if (ts.isIdentifier(name)) {
      this.#numbers.set(name.text, value);
      this.#take(name.text, value);
    } else if (this.isMeasured(value)) {
      name.elements.forEach((element) => this.#durations.add(element.getText()));
    }
  }

  #take(name: string, value: ts.Expression): void {
    if (this.isMeasured(value)) {
      this.#durations.add(name);
    } else if (this.#isInstant(value)) {
      this.#instants.add(name);
    }
  }

  #returnsWhatPassed(body: ts.ConciseBody): boolean {
    const returned = (node: ts.Node): boolean =>
      ts.isReturnStatement(node)
        ? node.expression !== undefined && this.isMeasured(node.expression)
        : !ts.isFunctionLike(node) && (ts.forEachChild(node, (child) => returned(child) || undefined) ?? false);
    return ts.isBlock(body) ? returned(body) : this.isMeasured(body);
  }
}

/** Milliseconds of what users write for a duration. */
function durationOf(names: Names, node: ts.Expression): number | undefined {
  const [, count, unit] = ts.isStringLiteral(node) ? (/^([\d.]+) ?(ms|s)$/.exec(node.text) ?? []) : [];
  return count === undefined ? names.valueOf(node) : Number(count) * (unit === 's' ? 1_000 : 1);
}

/** The test, block of tests or file around a node, from the inside. */
function* blocksAround(node: ts.Node): Generator<ts.Node> {
  for (let outer: ts.Node = node; outer.parent; outer = outer.parent) {
    if ((ts.isCallExpression(outer) && BLOCKS.test(calleeOf(outer))) || ts.isSourceFile(outer.parent)) {
      yield ts.isSourceFile(outer.parent) && !(ts.isCallExpression(outer) && BLOCKS.test(calleeOf(outer))) ? outer.parent : outer;
    }
  }
  yield node.getSourceFile();
}

/** Finds the claims of real time in a file that a machine which stands still for a moment can break. */
export class RealTime {
  readonly #source: ts.SourceFile;
  readonly #names: Names;
  /** Blocks and files whose time is played. */
  readonly #played = new Set<ts.Node>();
  readonly #finds: Find[] = [];

  constructor(path: string, text: string) {
    this.#source = parse(path, text);
    this.#names = new Names(path, this.#source);
  }

  finds(): readonly Find[] {
    this.#seekInstalls(this.#source);
    this.#seek(this.#source);
    return this.#finds;
  }

  #seekInstalls(node: ts.Node): void {
    if (ts.isCallExpression(node) && INSTALLS.test(calleeOf(node))) {
      const [block] = blocksAround(node);
      this.#played.add(block as ts.Node);
    }
    ts.forEachChild(node, (child) => this.#seekInstalls(child));
  }

  #seek(node: ts.Node): void {
    if (ts.isCallExpression(node)) {
      this.#seekIn(node);
    }
    if (ts.isPropertyAssignment(node) && node.name.getText() === 'ttl') {
      this.#seekLease(node);
    }
    ts.forEachChild(node, (child) => this.#seek(child));
  }

  #seekLease(ttl: ts.PropertyAssignment): void {
    const ttlMs = durationOf(this.#names, ttl.initializer);
    const [block] = blocksAround(ttl);
    if (ttlMs !== undefined && ttlMs < LEAST_LEASE_MS && block && within(block, claimsHeld)) {
      this.#found(ttl, `a lease of ${ttlMs} ms is to be held yet`);
    }
  }

  #seekIn(call: ts.CallExpression): void {
    const name = calleeOf(call);
    const [first, , third] = call.arguments;
    const under = (ms: ts.Expression | undefined): number | undefined => {
      const value = ms && this.#names.valueOf(ms);
      return value !== undefined && value < LEAST_CLAIM_MS ? value : undefined;
    };
    if (ts.isPropertyAccessExpression(call.expression)) {
      this.#seekMatcher(call, call.expression, under(first));
    }
    if (name === 'until' && under(third) !== undefined) {
      this.#found(call, `until() waits for ${under(third)} ms at most`);
    }
    if (/^(test|it)(\.|$)/.test(name) && under(third) !== undefined) {
      this.#found(call, `a test has ${under(third)} ms`);
    }
    if (name === 'jest.setTimeout' && under(first) !== undefined) {
      this.#found(call, `each test has ${under(first)} ms`);
    }
    if (name === 'AbortSignal.timeout' && under(first) !== undefined && limitsWhatIsAwaited(call)) {
      this.#found(call, `what is awaited has ${under(first)} ms`);
    }
    if (name === 'Promise.race' && first) {
      this.#seekRace(call, first, under);
    }
  }

  #seekMatcher(call: ts.CallExpression, { name, expression }: ts.PropertyAccessExpression, bound: number | undefined): void {
    const isNot = ts.isPropertyAccessExpression(expression) && expression.name.text === 'not';
    const expected = isNot ? expression.expression : expression;
    if (!ts.isCallExpression(expected) || calleeOf(expected) !== 'expect') {
      return;
    }
    const [claimed] = expected.arguments;
    if (!claimed) {
      return;
    }
    if (bound !== undefined && (isNot ? NOT_UPPER : UPPER).test(name.text) && this.#names.isMeasured(claimed)) {
      this.#found(call, `what passed is claimed to be under ${bound} ms`);
    }
    const isLess =
      ts.isBinaryExpression(claimed) &&
      [ts.SyntaxKind.LessThanToken, ts.SyntaxKind.LessThanEqualsToken].includes(claimed.operatorToken.kind);
    if (isLess && this.#names.isMeasured(claimed.left)) {
      const limit = this.#names.valueOf(claimed.right);
      if (limit !== undefined && limit < LEAST_CLAIM_MS) {
        this.#found(call, `what passed is claimed to be under ${limit} ms`);
      }
    }
  }

  #seekRace(call: ts.CallExpression, racers: ts.Expression, under: (ms: ts.Expression | undefined) => number | undefined): void {
    within(racers, (inner) => {
      if (!ts.isCallExpression(inner)) {
        return false;
      }
      const ms = { sleep: inner.arguments[0], setTimeout: inner.arguments[1], 'AbortSignal.timeout': inner.arguments[0] }[calleeOf(inner)];
      if (under(ms) === undefined) {
        return false;
      }
      this.#found(call, `what races with a sleep has ${under(ms)} ms`);
      return true;
    });
  }

  #found(node: ts.Node, what: string): void {
    const { line } = this.#source.getLineAndCharacterOfPosition(node.getEnd());
    const { line: begin } = this.#source.getLineAndCharacterOfPosition(node.getStart());
    const lines = this.#source.text.split('\n').slice(Math.max(0, begin - 1), line + 1);
    const isPlayed = [...blocksAround(node), this.#source].some((block) => this.#played.has(block));
    if (!isPlayed && !lines.some((each) => REASON.test(each))) {
      this.#finds.push({ line: begin + 1, what });
    }
  }
}

/** Whether a node is `expect(lock.isHeld()).toBe(true)`. */
function claimsHeld(node: ts.Node): boolean {
  return ts.isCallExpression(node) && /^expect\((await )?[\w.]+\.isHeld\(\)\)\.toBe\(true\)$/.test(node.getText());
}

/** Whether a signal is given to something that is awaited, and not to the library, whose own limit it may be. */
function limitsWhatIsAwaited(signal: ts.CallExpression): boolean {
  for (let outer: ts.Node = signal.parent; !ts.isStatement(outer); outer = outer.parent) {
    if (ts.isCallExpression(outer)) {
      return CLAIMED_WHILE.test(calleeOf(outer));
    }
  }
  return false;
}

const parse = (path: string, text: string): ts.SourceFile => ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true);

/** Which names a file imports from files beside it, and where those are. */
function importsOf(path: string, source: ts.SourceFile): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const statement of source.statements.filter(ts.isImportDeclaration)) {
    const from = ts.isStringLiteral(statement.moduleSpecifier) ? statement.moduleSpecifier.text : '';
    const file = `${join(dirname(path), from.replace(/\.js$/, ''))}.ts`;
    const names = statement.importClause?.namedBindings;
    if (from.startsWith('.') && names && ts.isNamedImports(names) && existsSync(file)) {
      names.elements.forEach(({ name }) => files.set(name.text, file));
    }
  }
  return files;
}

const known = new Map<string, Names>();

function namesOf(file: string): Names {
  const names = known.get(file) ?? new Names(file, parse(file, readFileSync(file, 'utf8')));
  known.set(file, names);
  return names;
}
