import { median, percentile } from './numbers.mjs';

/** Callers that want one key: in each burst all begin together, and each takes its turns one after the other. */
export async function contend(connection, { callers, bursts, turns }) {
  const waits = [];
  let failures = 0;
  async function caller() {
    for (let turn = 0; turn < turns; turn += 1) {
      const start = performance.now();
      try {
        const held = await connection.acquire('hot');
        waits.push(performance.now() - start);
        await connection.release(held);
      } catch {
        failures += 1;
      }
    }
  }
  const start = performance.now();
  for (let burst = 0; burst < bursts; burst += 1) {
    await Promise.all(Array.from({ length: callers }, caller));
  }
  const rate = (waits.length * 1_000) / (performance.now() - start);
  return { rate, failures, wait: median(waits), longWait: percentile(waits, 99) };
}

export function summary(repeats) {
  return {
    rate: median(repeats.map(({ rate }) => rate)),
    spread: median(repeats.map(({ wait, longWait }) => longWait / wait)),
    longWait: median(repeats.map(({ longWait }) => longWait)),
    failures: repeats.reduce((sum, { failures }) => sum + failures, 0),
  };
}
