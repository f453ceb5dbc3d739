// The cost of each store: on Redis, a quorum, PostgreSQL and MySQL, each beside the least that has to be sent there.
import { alternate } from '../alternate.mjs';
import { connected } from '../connected.mjs';
import { contend, summary } from '../contention.mjs';
import { runFleet } from '../fleet-run.mjs';
import { handOvers } from '../hand-overs.mjs';
import { atMost, line, waitingNote } from '../line.mjs';
import { machineMs, median } from '../numbers.mjs';
import { acquireAndReleaseEach, newKeys, pairsPerSecond, timeEach } from '../pairs.mjs';
import { countRoundTrips } from '../sent-commands.mjs';
import { STORE_PLACES } from '../store-places.mjs';
import { perSecond, settled, statementsOfWaiting } from '../waiting.mjs';
import { askAll, withWorkers } from '../worker.mjs';

export const stores = {
  name: 'stores',
  async run({ sizes }) {
    const lines = [];
    for (const { start, ...store } of STORE_PLACES) {
      const place = await start();
      try {
        lines.push(...(await onOne(place, store, sizes.stores)));
      } finally {
        await place.stop();
      }
    }
    // Grouped by figure.
    return lines.toSorted((one, other) => ROWS.indexOf(one.row) - ROWS.indexOf(other.row));
  },
};

const ROWS = [
  ...['pair', 'parallel', 'hot', 'fleet'].flatMap((row) => [`stores ${row}`, `stores ${row} floor`, `stores ${row} trips`]),
  ...[
    'stores fleet statements',
    'stores hand-over',
    'stores several keys',
    'stores several keys longest',
    'stores waiting 1',
    'stores waiting 100',
    'stores waiting 1000',
    'stores idle',
  ],
];
/** Time for every process to hear when to start, in milliseconds. */
const NOTICE_MS = 100;
/** The most statements a second that a waiting process may send. */
const WAITING_LIMIT = 25;

async function onOne(place, store, sizes) {
  const { subjects, port } = place;
  return [
    ...(await connected(subjects, port, {}, async (connections) => [
      ...(await pairs(place, store, connections, sizes.pair)),
      ...(await parallel(place, store, connections, sizes.parallel)),
      ...(await hot(place, store, connections, sizes.hot)),
    ])),
    ...(await fleet(place, store, sizes.fleet)),
    ...(place.waiters ? await waiting(place, store, sizes) : []),
  ];
}

async function pairs({ subjects, clear }, { name, limit, patience }, connections, { rounds, pairs: most, warmUp, counted }) {
  const count = Math.ceil(most * patience);
  for (const connection of connections.values()) {
    await acquireAndReleaseEach(connection, newKeys(warmUp * patience));
  }
  const times = new Float64Array(count);
  const results = await alternate(subjects, rounds, async (subject) => {
    await clear();
    await timeEach(connections.get(subject), newKeys(count), times);
    return median(times) * 1_000;
  });
  const [own, least] = subjects.map((subject) => results.get(subject));
  // Batch by batch, since the machine may change its pace in between.
  const ratio = median(own.map((time, round) => time / least[round]));
  const trips = await tripsOf(connections.get(subjects[0]), counted);
  return [
    line('stores pair', name, median(own), 'µs', { ratio, of: 'its floor', ...(limit && atMost(ratio, limit)) }),
    line('stores pair floor', name, median(least), 'µs', { note: subjects[1].note }),
    line('stores pair trips', name, trips, 'round trips a pair'),
  ];
}

async function parallel({ subjects, clear }, { name, patience }, connections, { repeats, callers, pairs: most, warmUp }) {
  const count = Math.ceil(most * patience);
  for (const connection of connections.values()) {
    await pairsPerSecond(connection, callers, Math.ceil(warmUp * patience));
  }
  let trips = 0;
  const results = await alternate(subjects, repeats, async (subject) => {
    await clear();
    const counted = countRoundTrips();
    const rate = await pairsPerSecond(connections.get(subject), callers, count);
    trips += subject === subjects[0] ? counted() : 0;
    return rate;
  });
  const [own, least] = subjects.map((subject) => median(results.get(subject)));
  return [
    line('stores parallel', name, own, 'pairs/s', { ratio: own / least, of: 'its floor' }),
    line('stores parallel floor', name, least, 'pairs/s'),
    line('stores parallel trips', name, trips / (repeats * callers * count), 'round trips a pair'),
  ];
}

async function tripsOf(connection, pairCount) {
  const trips = countRoundTrips();
  await acquireAndReleaseEach(connection, newKeys(pairCount));
  return trips() / pairCount;
}

/**
 * The floor, which cannot wait, has its pairs one after the other: this is the fastest way to ask anew for each pair.
 */
async function hot({ subjects, clear }, { name }, connections, { repeats, callers, bursts, warmUp }) {
  const [library, hand] = subjects;
  await contend(connections.get(library), { callers, bursts: Math.ceil(warmUp / callers), turns: 1 });
  let trips = 0;
  const results = await alternate(subjects, repeats, async (subject) => {
    await clear();
    if (subject === hand) {
      return contend(connections.get(hand), { callers: 1, bursts: 1, turns: callers * bursts });
    }
    const count = countRoundTrips();
    const result = await contend(connections.get(library), { callers, bursts, turns: 1 });
    trips += count();
    return result;
  });
  const [own, least] = subjects.map((subject) => summary(results.get(subject)));
  return [
    line('stores hot', name, own.rate, 'pairs/s', {
      ratio: own.rate / least.rate,
      of: 'its floor',
      note: waitingNote(library, false, own.failures),
    }),
    line('stores hot floor', name, least.rate, 'pairs/s', { note: 'one caller' }),
    line('stores hot trips', name, trips / (repeats * bursts * callers), 'round trips a pair'),
  ];
}

function fleet({ subjects: [library], port, clear, statements, fleetLimits }, { name }, sizes) {
  return withWorkers('fleet', sizes.processes, async (workers) => {
    let before;
    const cleared = async () => {
      await clear();
      before ??= await statements?.();
    };
    const result = (await runFleet(workers, [library], { ...sizes, port, clear: cleared })).get(library);
    const sent = statements && ((await statements()) - before) / (sizes.repeats * sizes.processes * sizes.callers);
    await Promise.all(workers.map((worker) => worker.ask('close')));
    return [
      line('stores fleet', name, result.wall, 'ms', {
        ratio: result.ratio,
        of: 'its sections',
        note: waitingNote(library, false, result.failures),
        ...(fleetLimits && atMost(result.ratio, fleetLimits.ratio)),
      }),
      line('stores fleet trips', name, result.roundTrips, 'round trips a pair'),
      ...(statements ? [line('stores fleet statements', name, sent, 'statements a pair', atMost(sent, fleetLimits.statements))] : []),
    ];
  });
}

/** The cost and the speed of the ways to wait. */
async function waiting(place, { name }, sizes) {
  const lines = [];
  for (const { subject, limitMs } of place.waiters) {
    const column = subject === place.subjects[0] ? name : `${name} that polls`;
    const time = await handOverTime(subject, place, sizes.handOver);
    lines.push(line('stores hand-over', column, time, 'ms', atMost(time, limitMs)));
    const { median: typical, longest, failures } = await severalKeys(subject, place, sizes.severalKeys);
    lines.push(line('stores several keys', column, typical, 'ms', { note: waitingNote(subject, false, failures) }));
    lines.push(line('stores several keys longest', column, longest, 'ms'));
    await connected([subject, { ...subject }], place.port, {}, async (connections) => {
      // After a lock that nobody waits for: within half a minute after others, two statements delete the rows that were
      // left behind.
      await Promise.all([...connections.values()].map((connection) => acquireAndReleaseEach(connection, newKeys(10))));
      await settled(place.statements);
      const idle = await perSecond(place.statements, sizes.waiting.measureMs);
      lines.push(line('stores idle', column, idle, 'statements/s', atMost(idle, 0)));
      for (const count of sizes.waiting.counts) {
        const rate = await statementsOfWaiting([...connections.values()], place.statements, { ...sizes.waiting, count });
        lines.push(line(`stores waiting ${count}`, column, rate, 'statements/s', atMost(rate, WAITING_LIMIT)));
      }
    });
  }
  return lines;
}

/** How long hand-overs take where each of several processes has callers for each of several keys. */
function severalKeys({ name: subject }, { port }, { processes, keys, callers, sectionMs, warmUp }) {
  return withWorkers('fleet', processes, async (workers) => {
    await askAll(workers, 'connect', { subject, port, patient: true, warmUp });
    const startAt = machineMs() + NOTICE_MS;
    const runs = await Promise.all(
      newKeys(keys).map(async (key) => {
        const lanes = Array.from({ length: callers }, () => [key]);
        const answers = await askAll(workers, 'contend', { subject, port, lanes, startAt, sectionMs });
        return answers.map(({ turns }) => turns.filter((turn) => turn !== null));
      }),
    );
    await askAll(workers, 'close');
    const times = runs.flatMap(handOverTimes);
    return { median: median(times), longest: Math.max(...times), failures: processes * keys * callers - runs.flat(2).length };
  });
}

/** The times from the end of a section in one process to the start of the next one in another. */
function handOverTimes(byProcess) {
  const turns = byProcess
    .flatMap((own, process) => own.map((turn) => ({ ...turn, process })))
    .toSorted((one, other) => one.startedAt - other.startedAt);
  return turns.slice(1).flatMap(({ process, startedAt }, at) => (turns[at].process === process ? [] : [startedAt - turns[at].endedAt]));
}

function handOverTime({ name: subject }, { port }, { lanes, rounds, warmUp }) {
  return withWorkers('hand-over', 2, async (workers) => {
    await askAll(workers, 'connect', { subject, port, warmUp });
    const times = await Promise.all(Array.from({ length: lanes }, () => handOvers(workers, { subject, port }, newKeys(rounds))));
    await askAll(workers, 'close');
    return median(times.flat().map((time) => time ?? Infinity));
  });
}
