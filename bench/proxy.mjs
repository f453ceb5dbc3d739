import { fork } from 'node:child_process';
import { once } from 'node:events';
import { median } from './numbers.mjs';
import { connectClient } from './redis-client.mjs';

const ADDED_MS = 1;
const TOLERANCE_MS = 0.15;

/** Ways to servers that add a millisecond to each round trip, half of it in each direction, as between zones. */
export async function startProxy(serverPort) {
  const child = fork(new URL('proxy-process.mjs', import.meta.url));
  const ways = new Map();
  const portTo = async (target) => {
    if (!ways.has(target)) {
      child.send({ target });
      const [{ port }] = await once(child, 'message');
      ways.set(target, port);
    }
    return ways.get(target);
  };
  const port = await portTo(serverPort);
  const direct = await connectClient(serverPort);
  const proxied = await connectClient(port);
  // The time that the proxy itself takes counts as distance, so its delay is set by measuring.
  let delayMs = ADDED_MS / 2;
  let addedMs;
  for (let attempt = 0; attempt < 4; attempt += 1) {
    child.send({ delayMs });
    addedMs = await addedRoundTrip(direct, proxied);
    if (Math.abs(addedMs - ADDED_MS) < TOLERANCE_MS / 3) {
      break;
    }
    delayMs = Math.max(0, delayMs + (ADDED_MS - addedMs) / 2);
  }
  direct.disconnect();
  proxied.disconnect();
  return { port, portTo, addedMs, isAccurate: Math.abs(addedMs - ADDED_MS) < TOLERANCE_MS, stop: () => child.kill('SIGKILL') };
}

async function addedRoundTrip(direct, proxied) {
  await roundTrip(proxied, 100);
  await roundTrip(direct, 100);
  return (await roundTrip(proxied, 400)) - (await roundTrip(direct, 400));
}

async function roundTrip(client, pings) {
  const times = new Float64Array(pings);
  for (let i = 0; i < pings; i += 1) {
    const start = performance.now();
    await client.ping();
    times[i] = performance.now() - start;
  }
  return median(times);
}
