/** Callers that got the lock after one of the same process that had called later. */
export function overtaken(turns) {
  let latest = -1;
  let count = 0;
  for (const { index } of turns) {
    if (index < latest) {
      count += 1;
    }
    latest = Math.max(latest, index);
  }
  return count;
}

/**
 * The longest run of turns of one process while another process had callers that waited; turns in the order of their
 * grants.
 */
export function longestRun(turns) {
  let longest = 0;
  let run = 0;
  for (const [place, turn] of turns.entries()) {
    const othersWait = turns.slice(place + 1).some((later) => later.process !== turn.process && later.calledAt < turn.startedAt);
    const goesOn = turns[place - 1]?.process === turn.process;
    run = othersWait ? (goesOn ? run + 1 : 1) : 0;
    longest = Math.max(longest, run);
  }
  return longest;
}

/** Turns that began before the one before them had ended: the lock did not exclude. */
export function overlaps(turns) {
  return turns.filter((turn, place) => place > 0 && turn.startedAt < turns[place - 1].endedAt).length;
}
