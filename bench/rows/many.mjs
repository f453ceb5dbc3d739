// Very many leases held at once by one process.
import { atMost, line } from '../line.mjs';
import { thisLibrary } from '../subjects/index.mjs';
import { withWorkers } from '../worker.mjs';

export const many = {
  name: 'many',
  run: ({ server, sizes }) =>
    withWorkers('many', 1, async ([worker]) => {
      await server.client.flushall();
      const { commandsPerRound, delayMs, lost } = await worker.ask('many', { port: server.port, ...sizes.many });
      const { leases, holdMs } = sizes.many;
      const note = `${leases} leases for ${holdMs / 1_000} s`;
      return [
        line('many', thisLibrary.name, commandsPerRound, 'renewals a round', { note, ...atMost(commandsPerRound, 100) }),
        line('many delay p99', thisLibrary.name, delayMs, 'ms', { note, ...atMost(delayMs, 20) }),
        line('many lost', thisLibrary.name, lost, 'leases', { note, ...atMost(lost, 0) }),
      ];
    }),
};
