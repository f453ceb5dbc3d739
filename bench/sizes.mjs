/** How much each row does. The quick sizes say the same, with more noise. */
export const SIZES = {
  full: {
    steady: {
      newKeys: { warmth: still(12, 30), repeats: 15, ...callersOf(64, { leadIn: 25, task: 100 }) },
      sameKeys: { warmth: still(4, 20), repeats: 15, ...callersOf(64, { leadIn: 25, task: 100 }, 'same') },
      near: { warmth: still(4, 15), repeats: 20, leadIn: { calls: 150 }, task: { calls: 1_000 } },
      far: { warmth: still(3, 8), repeats: 12, leadIn: { calls: 15 }, task: { calls: 100 } },
      arrivals: { warmth: still(3, 6), repeats: 7, ...arrivalsOf(5_000, { leadIn: 0.2, task: 0.8 }) },
      left: { callers: 64, calls: 500, idleMs: 3_000, restMs: 15_000 },
    },
    cold: {
      near: { repeats: 40, warmUp: { calls: 5_000 }, leadIn: { calls: 50 }, task: { calls: 300 } },
      far: { repeats: 20, warmUp: { calls: 300 }, leadIn: { calls: 10 }, task: { calls: 100 } },
      manyCallers: { repeats: 10, ...callersOf(64, { warmUp: 300, leadIn: 20, task: 150 }) },
      arrivals: { repeats: 7, ...arrivalsOf(5_000, { warmUp: 2, leadIn: 0.2, task: 1 }) },
    },
    transfers: { repeats: 7, processes: 2, callers: 10, calls: 20, sectionMs: 3, wallets: 4, warmUp: 500 },
    hot: { repeats: 3, callers: 64, bursts: 4, turns: 30, farBursts: 1, farTurns: 4 },
    fleet: { repeats: 3, processes: 4, callers: 50, sectionMs: 5 },
    handOver: { repeats: 3, lanes: 8, rounds: 12 },
    permits: {
      near: { warmth: still(4, 15), repeats: 20, leadIn: { calls: 150 }, task: { calls: 1_000 } },
      newKeys: { warmth: still(12, 30), repeats: 15, ...callersOf(64, { leadIn: 25, task: 100 }) },
      oneKey: { warmth: still(4, 10), repeats: 7, ...callersOf(64, { leadIn: 10, task: 40 }, 'one') },
      fleet: { repeats: 7, processes: 4, callers: 50, sectionMs: 5, warmUp: 300 },
    },
    readMode: { repeats: 5, callers: 64, turns: 300, warmUp: 500, writers: { everyMs: 50, writes: 120 } },
    reentry: { batches: 20, calls: 20_000 },
    memory: { repeats: 40, calls: 2_000 },
    load: { repeats: 15 },
    telemetry: { rounds: 60, pairs: 300, calls: 2_000 },
    many: { leases: 10_000, ttlMs: 10_000, holdMs: 30_000 },
    endless: { pairs: 1_000_000, callers: 64, warmUp: 20_000, restMs: 15_000 },
    stores: {
      pair: { rounds: 60, pairs: 200, warmUp: 5_000, counted: 200 },
      parallel: { repeats: 5, callers: 64, pairs: 100, warmUp: 50 },
      hot: { repeats: 5, callers: 64, bursts: 40, warmUp: 2_000 },
      fleet: { repeats: 3, processes: 4, callers: 50, sectionMs: 5, warmUp: 300 },
      handOver: { lanes: 4, rounds: 24, warmUp: 300 },
      severalKeys: { processes: 4, keys: 8, callers: 50, sectionMs: 5, warmUp: 300 },
      waiting: { counts: [1, 100, 1_000], measureMs: 10_000 },
    },
  },
  quick: {
    steady: {
      newKeys: { warmth: still(6, 8), repeats: 3, ...callersOf(64, { leadIn: 15, task: 50 }) },
      sameKeys: { warmth: still(3, 4), repeats: 3, ...callersOf(64, { leadIn: 15, task: 50 }, 'same') },
      near: { warmth: still(3, 4), repeats: 5, leadIn: { calls: 50 }, task: { calls: 300 } },
      far: { warmth: still(3, 3), repeats: 3, leadIn: { calls: 5 }, task: { calls: 40 } },
      arrivals: { warmth: still(3, 3), repeats: 3, ...arrivalsOf(5_000, { leadIn: 0.1, task: 0.4 }) },
      left: { callers: 64, calls: 100, idleMs: 1_000, restMs: 15_000 },
    },
    cold: {
      near: { repeats: 8, warmUp: { calls: 2_000 }, leadIn: { calls: 20 }, task: { calls: 150 } },
      far: { repeats: 4, warmUp: { calls: 50 }, leadIn: { calls: 5 }, task: { calls: 40 } },
      manyCallers: { repeats: 3, ...callersOf(64, { warmUp: 150, leadIn: 10, task: 80 }) },
      arrivals: { repeats: 3, ...arrivalsOf(5_000, { warmUp: 0.5, leadIn: 0.1, task: 0.4 }) },
    },
    transfers: { repeats: 2, processes: 2, callers: 10, calls: 10, sectionMs: 3, wallets: 4, warmUp: 100 },
    hot: { repeats: 1, callers: 64, bursts: 1, turns: 10, farBursts: 1, farTurns: 2 },
    fleet: { repeats: 1, processes: 4, callers: 20, sectionMs: 5 },
    handOver: { repeats: 1, lanes: 8, rounds: 4 },
    permits: {
      near: { warmth: still(3, 4), repeats: 5, leadIn: { calls: 50 }, task: { calls: 300 } },
      newKeys: { warmth: still(6, 8), repeats: 3, ...callersOf(64, { leadIn: 15, task: 50 }) },
      oneKey: { warmth: still(3, 4), repeats: 3, ...callersOf(64, { leadIn: 15, task: 50 }, 'one') },
      fleet: { repeats: 2, processes: 4, callers: 50, sectionMs: 5, warmUp: 100 },
    },
    readMode: { repeats: 2, callers: 64, turns: 100, warmUp: 200, writers: { everyMs: 50, writes: 20 } },
    reentry: { batches: 10, calls: 5_000 },
    memory: { repeats: 12, calls: 2_000 },
    load: { repeats: 5 },
    telemetry: { rounds: 16, pairs: 150, calls: 1_000 },
    many: { leases: 10_000, ttlMs: 10_000, holdMs: 12_000 },
    endless: { pairs: 100_000, callers: 64, warmUp: 20_000, restMs: 15_000 },
    stores: {
      pair: { rounds: 12, pairs: 60, warmUp: 1_200, counted: 100 },
      parallel: { repeats: 3, callers: 64, pairs: 40, warmUp: 20 },
      hot: { repeats: 1, callers: 64, bursts: 1, warmUp: 100 },
      fleet: { repeats: 1, processes: 4, callers: 20, sectionMs: 5, warmUp: 100 },
      handOver: { lanes: 4, rounds: 8, warmUp: 100 },
      severalKeys: { processes: 4, keys: 8, callers: 20, sectionMs: 5, warmUp: 100 },
      waiting: { counts: [1, 100, 1_000], measureMs: 4_000 },
    },
  },
};

/** Warm after at least so many turns, once the last ones differ by 5 % at most; no more than so many are made. */
function still(least, most) {
  return { least, most, spread: 0.05 };
}

/** So many calls of each caller, with keys that are new or the same for all its calls. */
function callersOf(callers, calls, keys = 'new') {
  return mapped(calls, (count) => ({ callers, calls: count, keys }));
}

/** For so many seconds. */
function arrivalsOf(rate, seconds) {
  return mapped(seconds, (count) => ({ rate, seconds: count }));
}

function mapped(record, change) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
