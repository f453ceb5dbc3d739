// A call made from inside the lock that it asks for.
import { connected } from '../connected.mjs';
import { atMost, line } from '../line.mjs';
import { median } from '../numbers.mjs';
import { totalCalls } from '../redis-server.mjs';
import { thisLibrary } from '../subjects/index.mjs';

const NOTE = 'the peers have no re-entry';

export const reentry = {
  name: 're-entry',
  async run({ server, sizes }) {
    const { batches, calls } = sizes.reentry;
    return connected([thisLibrary], server.port, {}, async (connections) => {
      const { locks } = connections.get(thisLibrary);
      const { times, commands } = await locks.withLock('outer', () => nested(server, locks, batches, calls));
      const time = median(times);
      return [
        line('re-entry', thisLibrary.name, time, 'µs', { note: NOTE, ...atMost(time, 5) }),
        line('re-entry commands', thisLibrary.name, commands, 'in all', { note: NOTE, ...atMost(commands, 0) }),
      ];
    });
  },
};

async function nested(server, locks, batches, calls) {
  await callAgain(locks, calls);
  const before = await totalCalls(server.client);
  const times = [];
  for (let batch = 0; batch < batches; batch += 1) {
    const start = performance.now();
    await callAgain(locks, calls);
    times.push(((performance.now() - start) * 1_000) / calls);
  }
  return { times, commands: (await totalCalls(server.client)) - before };
}

async function callAgain(locks, calls) {
  for (let call = 0; call < calls; call += 1) {
    await locks.withLock('outer', nothing);
  }
}

async function nothing() {}
