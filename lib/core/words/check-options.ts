import { LockConfigurationError } from './errors.js';
import { kindOf, shown, shownWithoutText } from './shown.js';

/** The names of all options of something; the compiler misses one that is not here. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/** Throws `LockConfigurationError` where options are no object, or have one that is unknown. */
export function checkOptions<Options extends object>(site: string, options: Options, known: OptionNames<Options>): void {
  if (typeof options !== 'object' || options === null) {
    throw new LockConfigurationError(
      `${site}: the options are ${shownWithoutText(options)}. Pass an object with ${Object.keys(known).join(', ')}, or nothing.`,
    );
  }
  // Each call comes here, so no list of names is made. Inherited options are read too; only the members that all
  // objects have are skipped.
  for (const name in options) {
    if (known[name] !== true && !(name in Object.prototype)) {
      throw unknownOption(site, name, Object.keys(known));
    }
  }
}

/** The error of an option that is mistyped, belongs elsewhere or does not exist. */
function unknownOption(site: string, name: string, known: readonly string[]): LockConfigurationError {
  const places = PLACES.find(([, ...options]) => options.includes(name))?.[0];
  const synonym = SYNONYMS.get(name);
  const meant = synonym !== undefined && known.includes(synonym) ? synonym : nearest(name, known);
  const what =
    places === undefined
      ? `there is no option ${shown(name)}.${meant === undefined ? '' : ` Did you mean '${meant}'?`}`
      : `${shown(name)} is no option here, but one of ${places}.`;
  return new LockConfigurationError(`${site}: ${what} The options are: ${known.join(', ')}.`);
}

/**
 * The error of an option whose value cannot be used; `option` names the option and where it was given. `cure` says
 * which value to pass.
 */
export function wrongOption(option: string, value: unknown, cure: string): LockConfigurationError {
  return new LockConfigurationError(`${option} is ${shown(value)}. ${cure}`);
}

/** Throws `LockConfigurationError` for a value that is no function. */
export function checkFunction(site: string, given: unknown, cure: string): void {
  if (typeof given !== 'function') {
    throw new LockConfigurationError(`${site}: what was passed is ${kindOf(given)}, not a function. ${cure}`);
  }
}

/** Whether something is an object with that method. */
export function hasMethod(given: unknown, name: string | symbol): boolean {
  return typeof given === 'object' && given !== null && typeof (given as Readonly<Record<string | symbol, unknown>>)[name] === 'function';
}

/** Throws `LockConfigurationError` where an option is given that has not these methods. */
export function checkMethods(option: string, given: unknown, methods: readonly string[], cure: string): void {
  if (given !== undefined && !methods.every((name) => hasMethod(given, name))) {
    throw wrongOption(option, given, cure);
  }
}

/** Throws `LockConfigurationError` where an option is given that is no boolean. */
export function checkSwitch(site: string, option: string, given: unknown): void {
  if (given !== undefined && typeof given !== 'boolean') {
    throw wrongOption(`${site}: ${option}`, given, 'Use true or false.');
  }
}

/** Throws `LockConfigurationError` where an option is given that is no text, or an empty one. */
export function checkText(site: string, option: string, given: unknown, cure: string): void {
  if (given !== undefined && (typeof given !== 'string' || given === '')) {
    throw wrongOption(`${site}: ${option}`, given, cure);
  }
}

const CALLS = 'calls such as withLock()';
const MODULE = 'LockModule.forRoot()';
const METHODS_AND_CALLS = `@DistributedLock() and of ${CALLS}`;

/**
 * Where options belong, for messages to users who pass them elsewhere. An option that all places of a row have stands
 * in that row only.
 */
const PLACES: readonly (readonly [place: string, ...options: string[]])[] = [
  [`${MODULE}, of ${METHODS_AND_CALLS}`, 'ttl', 'wait', 'maxHold', 'onUnavailable'],
  [METHODS_AND_CALLS, 'mode', 'minHold', 'renew', 'reentry', 'signal', 'name'],
  ['@DistributedLock() and of withLock()', 'onBusy'],
  [`${CALLS}; a method enters by what tickets it was called with`, 'ticket'],
  [`${CALLS}; a method is called Class.method`, 'by'],
  [`${MODULE}, @DistributedLock() and @Leader(); a service has one store, and @InjectLocks(name) injects that of another`, 'store'],
  ['@DistributedLock() and of @Leader()', 'key'],
  ['@DistributedLock()', 'returns'],
  ['@DistributedSemaphore()', 'permits'],
  ['@Leader() and of LockService.lead()', 'pause'],
  [MODULE, 'stores', 'prefix', 'debug', 'maxWaiters', 'deadlocks', 'telemetry', 'describe', 'transaction', 'isGlobal'],
  ['LockModule.forRootAsync()', 'useFactory', 'useClass', 'useExisting', 'inject', 'imports'],
  ['LockModule.forRootAsync() and of LockModule.forTesting()', 'storeNames'],
  ['LockModule.forTesting()', 'controller'],
  ['MemoryLockStore and of LockTesting', 'expires'],
  ['RedisLockStore', 'minReplicas'],
  ['RedisLockStore and of QuorumLockStore', 'credentials'],
  ['QuorumLockStore', 'longestLease'],
  ['MySqlLockStore', 'poll'],
  ['PostgresLockStore', 'listen'],
  ['PostgresLockStore and of what runs in its database', 'schema'],
];

/** The names that other libraries give an option. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['timeout', 'wait'],
  ['retries', 'wait'],
  ['retryCount', 'wait'],
  ['duration', 'ttl'],
  ['expire', 'ttl'],
]);

/** Which of the names is most like one that was mistyped; undefined where none is. */
export function nearest(mistyped: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, edits: editsBetween(mistyped.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, edits }) => edits <= Math.ceil(name.length / 3))
    .toSorted((a, b) => a.edits - b.edits);
  return best?.name;
}

/** How many letters have to be put in, taken away or changed (Levenshtein). */
function editsBetween(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const letter of from) {
    const row = [(above[0] as number) + 1];
    for (let column = 1; column <= to.length; column++) {
      const changed = (above[column - 1] as number) + (letter === to[column - 1] ? 0 : 1);
      row.push(Math.min(changed, (above[column] as number) + 1, (row[column - 1] as number) + 1));
    }
    above = row;
  }
  return above[to.length] as number;
}
