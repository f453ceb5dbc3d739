import { alternate } from './alternate.mjs';
import { line } from './line.mjs';
import { median } from './numbers.mjs';
import { CALLED, floor, thisLibrary } from './subjects/index.mjs';
import { startWorker } from './worker.mjs';

/**
 * Processes that make locked calls on Redis, one for each subject. They start when they are first needed, since all their modules take
 * seconds to load.
 */
export function makeCallers(server) {
  let workers;
  return {
    /**
     * The answers to one question by subject, in order. All subjects take turns. Before a turn, the keys of the one before are deleted,
     * garbage is collected, and `leadIn` runs, which does not count.
     */
    async ask(question, { repeats, warmUp, leadIn, task }, { port = server.port, turn = (run) => run() } = {}) {
      workers ??= new Map(CALLED.map((subject) => [subject, startWorker('calls', ['--expose-gc'])]));
      for (const [{ name: subject }, worker] of workers) {
        await worker.ask('connect', { subject, port });
        await worker.ask(question, { ...warmUp, port });
      }
      return alternate(CALLED, repeats, async (subject) => {
        const worker = workers.get(subject);
        await server.client.flushall();
        await worker.ask('collectGarbage');
        await worker.ask(question, { ...leadIn, port });
        return turn(() => worker.ask(question, { ...task, port }));
      });
    },
    /** Ends their processes; the next question starts others. */
    stop() {
      workers?.forEach((worker) => worker.stop());
      workers = undefined;
    },
  };
}

/** One figure of each answer, by subject. */
export function figuresOf(results, figure) {
  return new Map([...results].map(([subject, answers]) => [subject, answers.map((answer) => answer[figure])]));
}

/** Repeat by repeat, since the machine may change its pace in between. */
export function ratioOf(figures, subject, other) {
  return median(figures.get(subject).map((value, repeat) => value / figures.get(other)[repeat]));
}

/** A line for each subject, beside the floor or what `of` says. `judge` says what this library's ratio has to reach. */
export function linesOf(row, figures, unit, judge, of = { subject: floor, name: 'floor' }) {
  return CALLED.map((subject) => {
    const ratio = ratioOf(figures, subject, of.subject);
    const judged = subject === thisLibrary ? judge?.(ratio) : {};
    return line(row, subject.name, median(figures.get(subject)), unit, { ratio, of: of.name, note: subject.note, ...judged });
  });
}

/** The subject with the lowest figures. */
function lowest(figures, subjects) {
  return subjects.reduce((best, subject) => (ratioOf(figures, subject, best) < 1 ? subject : best));
}

/** How this library's figures compare to those of the subject that has the lowest ones. */
export function againstLowest(row, figures, unit, subjects, judge) {
  const best = lowest(figures, subjects);
  const ratio = ratioOf(figures, thisLibrary, best);
  return line(`${row} to peers`, thisLibrary.name, median(figures.get(thisLibrary)), unit, { ratio, of: best.name, ...judge?.(ratio) });
}
