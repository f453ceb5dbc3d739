// Calls of a busy service: warmed until the figures stand still, and no garbage is collected on demand.
import { alternate } from './alternate.mjs';
import { PLACES } from './places.mjs';
import { warm } from './warm.mjs';

/** One caller of each, which runs with its server where `where` says. */
export async function askOne(callers, where, sizes) {
  const moveTo = (place) => callers.forEach((caller) => caller.moveTo(place));
  moveTo(where);
  const results = await ask(callers, 'oneCaller', sizes);
  moveTo(PLACES.anywhere);
  return results;
}

/** All subjects take turns, with a lead-in that does not count: a process is idle in the turns of the others. */
export async function ask(callers, question, { repeats, leadIn, task, warmth }, portOf = ({ port }) => port) {
  for (const caller of callers.values()) {
    await caller.connect(await portOf(caller.server));
  }
  const turn = async (subject) => {
    await callers.get(subject).ask(question, leadIn);
    return callers.get(subject).ask(question, task);
  };
  const subjects = [...callers.keys()];
  const moving = await warm(subjects, warmth, turn);
  if (moving.length > 0) {
    process.stderr.write(` (still moved after ${warmth.most} turns of ${question}: ${moving.join(', ')})`);
  }
  return alternate(subjects, repeats, turn);
}
