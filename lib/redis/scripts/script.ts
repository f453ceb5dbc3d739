import { createHash } from 'node:crypto';

/** A value that a script may be given. */
export type Argument = string | number;

/** A Lua script, and the digest by which a server knows it. */
export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
}

/** A script with all that it is called with. */
export interface Command {
  readonly script: Script;
  /** The lock that it is about, as the user wrote it; empty for a command that is about no single lock. */
  readonly key: string;
  /** The number of KEYS, the KEYS and the ARGV, as EVAL and EVALSHA take them after the script. */
  readonly parameters: readonly [number, ...Argument[]];
}

/** A script that is called by the names of its KEYS and ARGV. */
export interface NamedScript<V> extends Script {
  /** The command that runs the script about a lock. */
  command(key: string, values: V): Command;
}

/** A script that can be one of several in a batch. */
export interface BatchableScript extends Script {
  /** How many KEYS and ARGV it has. */
  readonly keys: number;
  readonly args: number;
  /** The Lua source that declares the locals that the commands of a batch share. */
  readonly shared: string;
  /** The Lua source for a batch: the KEYS of the command begin after the first `k`, its ARGV after the first `a`. */
  readonly lua: string;
}

/**
 * The names of a script's KEYS, and of its ARGV: first those that are texts in Lua, then the numbers. A value that a
 * script only passes on is a text: Redis takes longer to write out a Lua number than to carry out a small command.
 */
interface Names<K extends string, A extends string, N extends string> {
  /** Declares the locals that the commands of a batch share. */
  readonly shared?: string;
  readonly keys: readonly K[];
  readonly args?: readonly A[];
  readonly numbers?: readonly N[];
}

type Values<K extends string, A extends string, N extends string> = Readonly<Record<K, string> & Record<A, Argument> & Record<N, number>>;
type Rest<R extends string> = Readonly<Record<R, readonly Argument[]>>;

/**
 * Declares a script by the names of its KEYS and ARGV: the Lua source has them as locals, and a call is an object with
 * a value for each. `rest` names a table of all further ARGV.
 */
export function script<
  const K extends string,
  const A extends string = never,
  const N extends string = never,
  const R extends string = never,
>(name: string, declared: Names<K, A, N> & { readonly rest?: R }, lua: string): NamedScript<Values<K, A, N> & Rest<R>> & BatchableScript {
  const { keys, args = [], numbers = [], rest, shared = '' } = declared;
  const names = [...keys, ...args, ...numbers];
  const further = rest === undefined ? '' : `local ${rest} = {unpack(ARGV, ${args.length + numbers.length + 1})}\n`;
  const made = {
    ...scriptOf(name, `${shared}${localsOf(declared)}\n${further}${lua}`),
    shared,
    keys: keys.length,
    args: args.length + numbers.length,
    lua: `${localsOf(declared, 'k + ', 'a + ')}\n${lua}`,
  };
  return {
    ...made,
    command(key, values) {
      const parameters: [number, ...Argument[]] = [keys.length];
      for (const each of names) {
        parameters.push(values[each]);
      }
      if (rest !== undefined) {
        parameters.push(...(values as Rest<R>)[rest]);
      }
      return { script: made, key, parameters };
    },
  };
}

/**
 * Declares a script that is called with a list. Its Lua source sets `reply` for one member; the script replies with a
 * list.
 */
export function scriptForEach<const K extends string, const A extends string = never, const N extends string = never>(
  name: string,
  declared: Names<K, A, N>,
  lua: string,
): NamedScript<readonly Values<K, A, N>[]> {
  const { keys, args = [], numbers = [] } = declared;
  const argNames = [...args, ...numbers];
  const made = scriptOf(
    name,
    `local replies = {}
for i = 1, #KEYS / ${keys.length} do
${localsOf(declared, `${keys.length} * (i - 1) + `, `${argNames.length} * (i - 1) + `)}
local reply
${lua}
replies[i] = reply
end
return replies
`,
  );
  return {
    ...made,
    command(key, list) {
      const parameters: [number, ...Argument[]] = [keys.length * list.length];
      for (const values of list) {
        parameters.push(...keys.map((each) => values[each]));
      }
      for (const values of list) {
        parameters.push(...argNames.map((each) => values[each]));
      }
      return { script: made, key, parameters };
    },
  };
}

/** Lua's locals. How many KEYS and ARGV of others come before them is said in Lua, with a plus. */
function localsOf({ keys, args = [], numbers = [] }: Names<string, string, string>, keysBefore = '', argsBefore = ''): string {
  const values = [
    ...keys.map((_, index) => `KEYS[${keysBefore}${index + 1}]`),
    ...args.map((_, index) => `ARGV[${argsBefore}${index + 1}]`),
    ...numbers.map((_, index) => `tonumber(ARGV[${argsBefore}${args.length + index + 1}])`),
  ];
  return `local ${[...keys, ...args, ...numbers].join(', ')} = ${values.join(', ')}`;
}

function scriptOf(name: string, source: string): Script {
  return { name, source, sha: digestOf(source) };
}

/** The digest by which a server knows a script. */
export function digestOf(source: string): string {
  return createHash('sha1').update(source).digest('hex');
}
