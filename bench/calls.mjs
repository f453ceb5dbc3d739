import { line } from './line.mjs';
import { median, quartiles } from './numbers.mjs';
import { place } from './places.mjs';
import { startRedis } from './redis-server.mjs';
import { floor, thisLibrary } from './subjects/index.mjs';
import { startWorker } from './worker.mjs';

/**
 * Runs `work` with a caller for each subject, and ends them. A caller is a process that makes locked calls, with a
 * Redis server of its own: no figure has the garbage of another subject in it, or what another one left in the server.
 */
export async function withCallers(subjects, execArgv, work) {
  const callers = new Map();
  try {
    for (const subject of subjects) {
      callers.set(subject, makeCaller(subject, await startRedis(), startWorker('calls', execArgv)));
    }
    return await work(callers);
  } finally {
    for (const caller of callers.values()) {
      await caller.stop();
    }
  }
}

function makeCaller({ name: subject }, server, worker) {
  let port;
  return {
    server,
    /** From now on it calls there: its server, or a way to it. */
    async connect(toPort) {
      port = toPort;
      await worker.ask('connect', { subject, port });
    },
    /** From now on it and its server run there: one of `PLACES`. */
    moveTo: (where) => place(where, worker.pid, server.pid),
    collectGarbage: () => worker.ask('collectGarbage'),
    /** The worker's answer, and the server's CPU time for each call, in microseconds. */
    async ask(question, task) {
      const before = await server.cpuSeconds();
      const answer = await worker.ask(question, { ...task, port });
      return { ...answer, server: (((await server.cpuSeconds()) - before) * 1e6) / answer.calls };
    },
    async stop() {
      worker.stop();
      await server.stop();
    },
  };
}

/** One figure of each answer, by subject. */
export function figuresOf(results, figure) {
  return new Map([...results].map(([subject, answers]) => [subject, answers.map((answer) => answer[figure])]));
}

/** A line for each subject, beside the floor or what `of` says. `judge` says what a judged ratio has to reach. */
export function linesOf(row, figures, unit, judge, of = { subject: floor, name: 'floor' }, noteOf = ({ note }) => note) {
  return [...figures.keys()].map((subject) => {
    return lineOf(row, figures, unit, subject, of, subject.isJudged ? judge : undefined, noteOf(subject));
  });
}

/** This library's figures beside those of the best peer: the one with the most pairs, or the least of anything else. */
export function againstBest(row, figures, unit, peers, judge) {
  const sign = unit === 'pairs/s' ? -1 : 1;
  const best = peers.reduce((first, peer) => (sign * (median(ratiosOf(figures, peer, first)) - 1) < 0 ? peer : first));
  return lineOf(row, figures, unit, thisLibrary, { subject: best, name: best.name }, judge);
}

function lineOf(row, figures, unit, subject, of, judge, note) {
  const [values, ratios] = [figures.get(subject), ratiosOf(figures, subject, of.subject)];
  const ratio = median(ratios);
  const spread = { value: quartiles(values), ratio: quartiles(ratios) };
  return line(row, subject.name, median(values), unit, { ratio, of: of.name, spread, note, ...judge?.(ratio) });
}

/** Repeat by repeat, since the machine may change its pace in between. */
function ratiosOf(figures, subject, other) {
  return figures.get(subject).map((value, repeat) => value / figures.get(other)[repeat]);
}
