// Transfers between a few wallets, each of which locks two: processes with many callers that contend all the time.
import { alternate } from '../alternate.mjs';
import { figuresOf, linesOf } from '../calls.mjs';
import { overlaps } from '../fairness.mjs';
import { atMost, waitingNote } from '../line.mjs';
import { machineMs, percentile, pseudoRandom } from '../numbers.mjs';
import { startRedis } from '../redis-server.mjs';
import { polling, TRANSFERRING } from '../subjects/index.mjs';
import { askAll, startWorker } from '../worker.mjs';

/** Time for every process to hear when to start. */
const NOTICE_MS = 100;

export const transfers = {
  name: 'transfers',
  async run({ sizes: { transfers: size } }) {
    const places = new Map();
    try {
      for (const subject of TRANSFERRING) {
        const server = await startRedis();
        const workers = Array.from({ length: size.processes }, () => startWorker('fleet'));
        places.set(subject, { server, workers });
        await askAll(workers, 'connect', { subject: subject.name, port: server.port, patient: true, warmUp: size.warmUp });
      }
      return report(await alternate(TRANSFERRING, size.repeats, (subject, repeat) => once(places.get(subject), subject, size, repeat)));
    } finally {
      for (const { server, workers } of places.values()) {
        workers.forEach((worker) => worker.stop());
        await server.stop();
      }
    }
  },
};

/** All subjects make the same transfers in a repeat. */
async function once({ server, workers }, { name }, { callers, calls, sectionMs, wallets }, repeat) {
  const random = pseudoRandom(repeat);
  const startAt = machineMs() + NOTICE_MS;
  const answers = await Promise.all(
    workers.map((worker) => {
      const lanes = Array.from({ length: callers }, () => Array.from({ length: calls }, () => twoOf(wallets, random)));
      return worker.ask('contend', { subject: name, port: server.port, lanes, startAt, sectionMs });
    }),
  );
  const turns = answers.flatMap((answer) => answer.turns);
  const made = turns.filter((turn) => turn !== null).toSorted((a, b) => a.startedAt - b.startedAt);
  for (let wallet = 0; wallet < wallets; wallet += 1) {
    if (overlaps(made.filter(({ key }) => key.includes(`wallet:${wallet}`))) > 0) {
      throw new Error(`transfers: two of ${name} have wallet ${wallet} at once`);
    }
  }
  const times = made.map(({ calledAt, releasedAt }) => releasedAt - calledAt);
  return {
    total: Math.max(...made.map(({ releasedAt }) => releasedAt)) - Math.min(...made.map(({ calledAt }) => calledAt)),
    p50: percentile(times, 50),
    p99: percentile(times, 99),
    commands: answers.reduce((sum, { commands }) => sum + commands, 0) / made.length,
    failures: turns.length - made.length,
  };
}

function twoOf(wallets, random) {
  const from = Math.floor(random() * wallets);
  const to = (from + 1 + Math.floor(random() * (wallets - 1))) % wallets;
  return [from, to].map((wallet) => `wallet:${wallet}`);
}

function report(results) {
  const failures = figuresOf(results, 'failures');
  const note = (subject) => waitingNote(subject, true, Math.max(...failures.get(subject)));
  const of = { subject: polling, name: polling.name };
  const lines = (row, figure, unit, limit) =>
    linesOf(row, figuresOf(results, figure), unit, (ratio) => limit && atMost(ratio, limit), of, note);
  return [
    ...lines('transfers', 'total', 'ms', 1.05),
    ...lines('transfers: p50', 'p50', 'ms'),
    ...lines('transfers: p99', 'p99', 'ms', 0.5),
    ...lines('transfers: commands', 'commands', 'per transfer'),
  ];
}
