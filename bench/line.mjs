/**
 * One figure of one subject: its value, and its ratio to what `of` names; `spread` has the quartiles of both. `target`
 * and `met` stand only where the figure has to reach something: the value where there is no ratio, and else the ratio.
 */
export function line(row, subject, value, unit, { ratio = null, of = null, spread = {}, target = null, met = null, note = null } = {}) {
  const quartiles = Object.fromEntries(Object.entries(spread).map(([name, values]) => [name, values.map(rounded)]));
  return { row, subject, value: rounded(value), unit, ratio: ratio && rounded(ratio), of, spread: quartiles, target, met, note };
}

function rounded(value) {
  return Number(value.toPrecision(4));
}

export function atMost(figure, limit) {
  return { target: `≤ ${limit}`, met: figure <= limit };
}

export function atLeast(figure, limit) {
  return { target: `≥ ${limit}`, met: figure >= limit };
}

/** How a subject did where callers wait: that it was tuned so as not to fail, and who failed all the same. */
export function waitingNote(subject, isTuned, failures) {
  const notes = [isTuned && subject.tuned && `tuned: ${subject.tuned}`, failures > 0 && `${failures} callers failed`].filter(Boolean);
  return notes.length > 0 ? notes.join('; ') : null;
}
