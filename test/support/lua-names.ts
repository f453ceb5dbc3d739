const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(' '),
);

/** The names in a Lua source that it neither declares nor reads from another name: its globals. */
export function globalsOf(source: string): string[] {
  const code = source.replace(/--[^\n]*/g, '').replace(/'(?:\\.|[^'\\\n])*'/g, "''");
  const tokens: string[] = code.match(/[A-Za-z_]\w*|\d[\w.]*|\.\.|[^\s\w]/g) ?? [];
  const scopes: Set<string>[] = [new Set()];
  const found = new Set<string>();
  /** The names with which the next scope begins: the variables of a `for`, the parameters of a function. */
  let pending: string[] = [];
  const namesFrom = (at: number): string[] => {
    const names: string[] = [];
    for (let next = at; /^[A-Za-z_]/.test(tokens[next] ?? ''); next += 2) {
      names.push(tokens[next] as string);
      if (tokens[next + 1] !== ',') {
        break;
      }
    }
    return names;
  };
  tokens.forEach((token, at) => {
    const isField = tokens[at - 1] === '.' || (tokens[at + 1] === '=' && tokens[at + 2] !== '=' && /[{,]/.test(tokens[at - 1] ?? ''));
    if (token === 'local' && tokens[at + 1] === 'function') {
      scopes.at(-1)?.add(tokens[at + 2] as string);
    } else if (token === 'local') {
      namesFrom(at + 1).forEach((name) => scopes.at(-1)?.add(name));
    } else if (token === 'for') {
      pending = namesFrom(at + 1);
    } else if (token === 'function') {
      scopes.push(new Set(namesFrom(tokens.indexOf('(', at) + 1)));
    } else if (token === 'do' || token === 'then') {
      scopes.push(new Set(pending));
      pending = [];
    } else if (token === 'else' || token === 'elseif' || token === 'end') {
      scopes.pop();
      if (token === 'else') {
        scopes.push(new Set());
      }
    } else if (/^[A-Za-z_]/.test(token) && !KEYWORDS.has(token) && !isField) {
      const isKnown = pending.includes(token) || scopes.some((scope) => scope.has(token));
      if (!isKnown) {
        found.add(token);
      }
    }
  });
  return [...found].toSorted();
}
