import type { Choice, Choices } from './choices.js';

/** The script for zsh, to be read after `compinit`. It has no comment: in an interactive shell, `eval` takes none. */
export function zshScript({ first, after, withValue, withFile }: Choices): string {
  const options = withValue.join('|');
  return `_nestjs_distributed_lock() {
  local at command=''
  local -a choices
  case "\${words[CURRENT - 1]}" in
    (${withFile.join('|')}) _files; return ;;
    (${options}) return 1 ;;
  esac
  for ((at = 2; at < CURRENT; at++)); do
    case "\${words[at]}" in
      (${options}) ((at++)) ;;
      (${after.map(({ command }) => command).join('|')}) command="\${words[at]}"; break ;;
    esac
  done
  case "$command" in
${after.map(({ command, choices }) => `    (${command}) choices=(${described(choices)}) ;;`).join('\n')}
    (*) choices=(${described(first)}) ;;
  esac
  _describe 'nestjs-distributed-lock' choices
}
compdef _nestjs_distributed_lock nestjs-distributed-lock`;
}

/** Each with what it does after a colon, as `_describe` takes it. */
function described(choices: readonly Choice[]): string {
  return choices.map(({ word, says }) => `'${says === '' ? word : `${word}:${says.replaceAll("'", '')}`}'`).join(' ');
}
