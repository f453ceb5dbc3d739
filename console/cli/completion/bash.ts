import type { Choice, Choices } from './choices.js';

/**
 * The script for bash, 3.2 or later. Bash splits words at `:` and `=`, so a piece of a key or of a URL may stand at any
 * place: the command is the first word that is the name of a command.
 */
export function bashScript({ first, after, withValue, withFile }: Choices): string {
  const options = withValue.join('|');
  return `_nestjs_distributed_lock() {
  local at command='' choices
  case "\${COMP_WORDS[COMP_CWORD - 1]}" in
    ${withFile.join('|')}) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")); return ;;
    ${options}|=) COMPREPLY=(); return ;;
  esac
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${COMP_WORDS[at]}" in
      ${options}) ((at++)) ;;
      ${after.map(({ command }) => command).join('|')}) command="\${COMP_WORDS[at]}"; break ;;
    esac
  done
  case "$command" in
${after.map(({ command, choices }) => `    ${command}) choices='${wordsOf(choices)}' ;;`).join('\n')}
    *) choices='${wordsOf(first)}' ;;
  esac
  COMPREPLY=($(compgen -W "$choices" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _nestjs_distributed_lock nestjs-distributed-lock`;
}

function wordsOf(choices: readonly Choice[]): string {
  return choices.map(({ word }) => word).join(' ');
}
