import { Random } from '../../support/random.js';
import type { ScriptedServer } from './scripted-server.js';
import { ServerRecord } from './server-record.js';
import { nextStep, take, type Side, type Step } from './steps.js';
import { VotingServer, type Machine } from './voting-server.js';

const STEPS = 60;
/** How many lines of a trace are shown. */
const LAST = 24;
/** Some time of 2023: what the specification computes with is as large as in production. */
const BEGIN_US = 1_700_000_000_000_000;

/** The messages that a real server has published since the last time. */
export type Received = () => Promise<readonly string[]>;

/** Where the scripts differ from their specification in the sequence of that seed, with what led to it. */
export async function differenceIn(seed: number, scripts: ScriptedServer, received: Received): Promise<string | undefined> {
  const random = new Random(seed);
  const side = specification();
  await scripts.forget();
  await scripts.setClock(BEGIN_US);
  await received();
  const taken: Step[] = [];
  const trace = [`MODEL_SEED=${seed}`];
  for (let count = 0; count < STEPS; count++) {
    // A command may arrive a second time, however late.
    const step = taken.length > 0 && random.chance(0.15) ? random.pick(taken) : nextStep(random, count, side.stored(), side.us);
    taken.push(...(step.kind === 'elapse' ? [] : [step]));
    const expected = textOf({ answer: await take(step, side), sent: side.sent.splice(0).toSorted(), stored: side.stored() });
    // One connection keeps what is sent at once in order.
    const [answer, stored] = await Promise.all([take(step, scripts), scripts.stored()]);
    const sent = step.kind === 'forceRelease' ? await received() : [];
    const found = textOf({ answer, sent: sent.toSorted(), stored });
    trace.push(JSON.stringify(step), `  ${expected}`);
    if (found !== expected) {
      return `${trace.slice(0, 1).concat(trace.slice(-LAST)).join('\n')}\nbut the server: ${found}`;
    }
  }
  return undefined;
}

interface Specification extends Side {
  readonly sent: string[];
  readonly us: number;
  stored(): ReturnType<VotingServer['stored']> & { readonly record: ReturnType<ServerRecord['stored']> };
}

/** A server that is nothing but its specification. */
function specification(): Specification {
  const machine: Machine = { us: BEGIN_US, counter: undefined };
  const sent: string[] = [];
  const start = (): { votes: VotingServer; record: ServerRecord } => ({
    votes: new VotingServer(machine, (process, message) => sent.push(`${process}: ${message}`)),
    record: new ServerRecord(machine),
  });
  let server = start();
  return {
    sent,
    get us() {
      return machine.us;
    },
    setClock: (us) => void (machine.us = us),
    setCounter: (counter) => void (machine.counter = counter),
    forget: () => {
      machine.counter = undefined;
      server = start();
    },
    vote: (request) => server.votes.vote(request),
    settle: (...args) => server.votes.settle(...args),
    join: (...args) => server.votes.join(...args),
    renew: (...args) => server.votes.renew(...args),
    release: (...args) => server.votes.release(...args),
    forceRelease: (...args) => server.votes.forceRelease(...args),
    inspect: () => server.votes.inspect(),
    report: (report) => server.record.report(report),
    stored: () => ({ ...server.votes.stored(), record: server.record.stored() }),
  };
}

/** As text, in which the order of names means nothing. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([first], [second]) => (first < second ? -1 : 1)))
      : inner,
  );
}
