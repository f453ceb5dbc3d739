/** Plays a body again and again, each time with other choices, until it has made all of them. */
export function forEachChoice(body: (choose: (count: number) => number) => void): void {
  const made: { choice: number; readonly count: number }[] = [];
  do {
    let at = 0;
    body((count) => {
      if (at === made.length) {
        made.push({ choice: 0, count });
      }
      return (made[at++] as { choice: number }).choice;
    });
    made.splice(at);
    while (made.length > 0 && (made.at(-1) as { choice: number; count: number }).choice + 1 >= (made.at(-1) as { count: number }).count) {
      made.pop();
    }
    if (made.length > 0) {
      (made.at(-1) as { choice: number }).choice++;
    }
  } while (made.length > 0);
}
