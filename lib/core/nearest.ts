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
