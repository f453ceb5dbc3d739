import { spawnSync } from 'node:child_process';
import { COMMANDS, optionsOf, type CommandName } from '../../console/cli/command-table';
import { OPTIONS } from '../../console/cli/options';
import { cli } from '../support/cli';
import { Terminal } from '../support/terminal';
import { until } from '../support/until';

const SHELLS = {
  bash: { command: 'bash --norc --noprofile -i', prepare: 'bind "set bell-style none"; bind "set page-completions off"' },
  zsh: { command: 'zsh -f -i', prepare: 'autoload -U compinit; compinit -D -u; unsetopt beep' },
} as const;

const isThere = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

// A shell that is missing is named by scripts/find-servers.mjs, and its tests are skipped.
describe.each(Object.entries(SHELLS))('%s', (shell, { command, prepare }) => {
  const each = isThere(shell) ? test : test.skip;
  let terminal: Terminal;

  beforeAll(async () => {
    if (!isThere(shell)) {
      return;
    }
    const { out, code } = await cli({}, ['completion', shell]);
    expect(code).toBe(0);
    terminal = await Terminal.start({ SCRIPT: out, HOME: '/nonexistent', PS1: '$ ' }, command, 50, 200);
    terminal.type(`${prepare}; eval "$SCRIPT"; PS1='rea''dy> '\r`);
    await until(`${shell} is ready`, () => terminal.screen.lines.some((line) => line === 'ready>'));
  });
  afterAll(() => terminal?.stop());

  const shown = (): string => terminal.screen.lines.join('\n');

  /** Resolves when what is expected stands there, after Tab was pressed behind these words. */
  async function completed(words: string, isDone: (text: string) => boolean): Promise<void> {
    // Control-U empties the line, Control-L the screen.
    terminal.type(`\u0015\u000cnestjs-distributed-lock ${words}\t`);
    await until(`${shell}: ${words}`, () => isDone(shown()));
  }

  each('completes a command, an option and a fixed value by their beginning', async () => {
    await completed('ins', (text) => text.includes('lock inspect'));
    await completed('release balance:42 --fe', (text) => text.includes('release balance:42 --fence'));
    await completed('--redis redis://host:1 --prefix list incidents --si', (text) => text.includes('incidents --since'));
    await completed('completion z', (text) => text.includes('completion zsh'));
    await completed('help doc', (text) => text.includes('help doctor'));
  });

  each('completes the path of a file', async () => {
    await completed('list --ca tsconfig.bu', (text) => text.includes('list --ca tsconfig.build.json'));
    await completed('list --limit tsconfig.bu', (text) => text.includes('list --limit tsconfig.bu') && !text.includes('tsconfig.build'));
  });

  each.each(Object.keys(COMMANDS) as CommandName[])('offers the options of %s, and no others', async (name) => {
    const taken: readonly string[] = optionsOf(name);
    const isOffered = (option: string): boolean => new RegExp(`^(.* )?--${option}( .*)?$`, 'm').test(shown());
    await completed(
      `${name} --\t`,
      (text) => text.includes(`lock ${name} --`) && Object.keys(OPTIONS).every((option) => isOffered(option) === taken.includes(option)),
    );
  });

  each('offers nothing for the value of an option', async () => {
    terminal.type('\u0015\u000cnestjs-distributed-lock list --limit \t\t');
    // The next line shows that the shell has read so far.
    terminal.type("\u0015echo do''ne\r");
    await until('the next line', () => terminal.screen.lines.some((line) => line.startsWith('done')));
    expect(shown()).not.toMatch(/--json|inspect/);
  });
});
