/** How much each row does. The quick sizes say the same, with more noise. */
export const SIZES = {
  full: {
    pair: { repeats: 5, batches: 20, pairs: 500, warmUp: 5_000, farBatches: 6, farPairs: 100 },
    parallel: { repeats: 7, callers: 64, pairs: 200, warmUp: 300 },
    arrivals: { repeats: 3, seconds: 4, warmUp: 2_000 },
    hot: { repeats: 3, callers: 64, bursts: 4, turns: 30, farBursts: 1, farTurns: 4 },
    fleet: { repeats: 3, processes: 4, callers: 50, sectionMs: 5 },
    handOver: { repeats: 3, lanes: 8, rounds: 12 },
    reentry: { batches: 20, calls: 20_000 },
    decorator: { repeats: 9, calls: 20_000, peerCalls: 2_000 },
    many: { leases: 10_000, ttlMs: 10_000, holdMs: 30_000 },
    endless: { pairs: 1_000_000, callers: 64, warmUp: 20_000, restMs: 15_000 },
    stores: {
      pair: { rounds: 60, pairs: 200, warmUp: 5_000, counted: 200 },
      parallel: { repeats: 5, callers: 64, pairs: 100, warmUp: 50 },
      hot: { repeats: 3, callers: 64, bursts: 4, warmUp: 300 },
      fleet: { repeats: 3, processes: 4, callers: 50, sectionMs: 5, warmUp: 300 },
    },
  },
  quick: {
    pair: { repeats: 1, batches: 12, pairs: 250, warmUp: 4_000, farBatches: 6, farPairs: 60 },
    parallel: { repeats: 3, callers: 64, pairs: 100, warmUp: 150 },
    arrivals: { repeats: 1, seconds: 2, warmUp: 1_000 },
    hot: { repeats: 1, callers: 64, bursts: 1, turns: 10, farBursts: 1, farTurns: 2 },
    fleet: { repeats: 1, processes: 4, callers: 20, sectionMs: 5 },
    handOver: { repeats: 1, lanes: 8, rounds: 4 },
    reentry: { batches: 10, calls: 5_000 },
    decorator: { repeats: 5, calls: 5_000, peerCalls: 300 },
    many: { leases: 10_000, ttlMs: 10_000, holdMs: 12_000 },
    endless: { pairs: 100_000, callers: 64, warmUp: 20_000, restMs: 15_000 },
    stores: {
      pair: { rounds: 12, pairs: 60, warmUp: 1_200, counted: 100 },
      parallel: { repeats: 3, callers: 64, pairs: 40, warmUp: 20 },
      hot: { repeats: 1, callers: 64, bursts: 1, warmUp: 100 },
      fleet: { repeats: 1, processes: 4, callers: 20, sectionMs: 5, warmUp: 100 },
    },
  },
};
