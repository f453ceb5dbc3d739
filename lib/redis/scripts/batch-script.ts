import { digestOf, type Argument, type BatchableScript, type Command, type Script } from './script.js';

/**
 * One script for several commands. It carries them out one after the other, each as its own script would, and replies
 * with a list of their replies. The error of a command is its reply, and ends none of the others.
 *
 * ARGV: for each command the name of its script, and its own ARGV.
 */
export class BatchScript implements Script {
  readonly name = 'batch';
  readonly source: string;
  readonly sha: string;
  readonly #names: ReadonlySet<string>;

  constructor(scripts: readonly BatchableScript[]) {
    this.#names = new Set(scripts.map(({ name }) => name));
    this.source = sourceOf(scripts);
    this.sha = digestOf(this.source);
  }

  /** Whether a command can be in a batch. */
  takes({ script }: Command): boolean {
    return this.#names.has(script.name);
  }

  /** The one command for all of them. */
  command(commands: readonly Command[]): Command {
    const parameters: [number, ...Argument[]] = [0];
    for (const { parameters: own } of commands) {
      for (let at = 1; at <= own[0]; at++) {
        parameters.push(own[at] as Argument);
      }
    }
    parameters[0] = parameters.length - 1;
    for (const { script, parameters: own } of commands) {
      parameters.push(script.name);
      for (let at = own[0] + 1; at < own.length; at++) {
        parameters.push(own[at] as Argument);
      }
    }
    return { script: this, key: '', parameters };
  }
}

function sourceOf(scripts: readonly BatchableScript[]): string {
  const members = scripts.map(({ name, keys, args, lua }) => `${name} = {${keys}, ${args}, function(k, a)\n${lua}\nend},\n`);
  const shared = [...new Set(scripts.map((script) => script.shared))];
  return `${shared.join('')}local scripts = {
${members.join('')}}
local replies, count, k, a = {}, 0, 0, 0
while a < #ARGV do
  local script = scripts[ARGV[a + 1]]
  local ran, reply = pcall(script[3], k, a + 1)
  if not ran then
    -- Servers before Redis 7 name a line, which says nothing to whoever knows the script of the command only.
    reply = {err = type(reply) == 'table' and reply.err or string.gsub(reply, '^@?user_script: ?%d+: ', '')}
  end
  count = count + 1
  replies[count] = reply or false
  k, a = k + script[1], a + 1 + script[2]
end
return replies
`;
}
