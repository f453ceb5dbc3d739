import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '../../support/redis-server.js';
import type { FaultName } from '../faults.js';

/** The faults that any server can have; resolves when it is over. */
export async function strikeServer(server: RedisServer, fault: FaultName, ms: number): Promise<void> {
  const { client } = server;
  switch (fault) {
    case 'stall':
      server.pause();
      await sleep(ms);
      server.resume();
      break;
    case 'restart':
      await server.kill();
      await sleep(ms);
      await server.start();
      break;
    case 'flush':
      await client.flushall();
      break;
    case 'scriptFlush':
      await client.script('FLUSH');
      break;
    case 'killClients':
      await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      break;
    case 'full':
      await client.config('SET', 'maxmemory', '1');
      await sleep(ms);
      await client.config('SET', 'maxmemory', '0');
      break;
    default:
      throw new Error(`A server cannot have the fault '${fault}'. Take it out of the faults of its topology.`);
  }
}
