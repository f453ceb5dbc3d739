import { bashScript } from './bash.js';
import { choices } from './choices.js';
import { zshScript } from './zsh.js';

/** The script that completes in a shell. */
export function completionOf(shell: string): string {
  return shell === 'zsh' ? zshScript(choices()) : bashScript(choices());
}
