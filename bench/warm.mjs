/** So many of the last turns are compared. */
const LAST = 3;

/**
 * Lets all subjects take turns until the client's CPU time of each has stood still: in its last three turns, the
 * largest was at most `spread` more than the smallest. A subject of which this was seen goes on with the others, so
 * that it stays warm. The names of those that still moved after `most` turns.
 */
export async function warm(subjects, { least, most, spread }, measure) {
  const figures = new Map(subjects.map((subject) => [subject, []]));
  let moving = subjects;
  for (let turn = 1; turn <= most && moving.length > 0; turn += 1) {
    for (const subject of subjects) {
      figures.get(subject).push((await measure(subject)).client);
    }
    moving = moving.filter((subject) => turn < least || !standsStill(figures.get(subject).slice(-LAST), spread));
  }
  return moving.map(({ name }) => name);
}

function standsStill(figures, spread) {
  return Math.max(...figures) <= Math.min(...figures) * (1 + spread);
}
