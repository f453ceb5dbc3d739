// What a locked call costs the server and the client's process in CPU time, with many callers that do not contend.
import { figuresOf, linesOf } from '../calls.mjs';
import { atMost } from '../line.mjs';

/** Up to Node 22, AsyncLocalStorage hooks into every promise of a process. */
const CLIENT_LIMIT = Number.parseInt(process.versions.node, 10) >= 24 ? 1 : 1.2;

export const cpu = {
  name: 'cpu',
  async run({ server, callers, sizes }) {
    const { task } = sizes.manyCallers;
    const turn = async (run) => {
      const before = await server.cpuSeconds();
      const { cpu: client } = await run();
      return { client, server: (((await server.cpuSeconds()) - before) * 1e6) / (task.callers * task.calls) };
    };
    const results = await callers.ask('manyCallers', sizes.manyCallers, { turn });
    return [
      ...linesOf("server's CPU", figuresOf(results, 'server'), 'µs', (ratio) => atMost(ratio, 1.2)),
      ...linesOf("client's CPU", figuresOf(results, 'client'), 'µs', (ratio) => atMost(ratio, CLIENT_LIMIT)),
    ];
  },
};
