/**
 * Runs `measure` for each subject in turn, starting each repeat with the next one; the results of each subject, in
 * order.
 */
export async function alternate(subjects, repeats, measure) {
  const results = new Map(subjects.map((subject) => [subject, []]));
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    for (let turn = 0; turn < subjects.length; turn += 1) {
      const subject = subjects[(turn + repeat) % subjects.length];
      results.get(subject).push(await measure(subject, repeat));
    }
  }
  return results;
}
