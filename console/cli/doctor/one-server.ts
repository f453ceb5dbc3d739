import { RedisConnection } from '../../../lib/redis/connection/redis-connection.js';
import type { RedisSource } from '../../../lib/redis/connection/redis-source.js';
import { productBy, valueOf } from '../../../lib/redis/server-info.js';
import { ok, type Finding } from './finding.js';

/** How many connections are made besides the first one. */
const OTHERS = 4;

/** Whether an address leads to one server that takes writes; `info` is the first server's reply to INFO. */
export async function oneServerFindings(source: RedisSource, info: string, name: string): Promise<Finding[]> {
  // Redis Enterprise has one set of data behind several servers.
  if (masterBy(info) === undefined || productBy(info)?.name === 'Redis Enterprise') {
    return [];
  }
  const others = await Promise.all(Array.from({ length: OTHERS }, () => infoOf(source)));
  const masters = new Set([info, ...others].map(masterBy).filter((id) => id !== undefined));
  const subject = `${name}: address`;
  return masters.size === 1
    ? [ok(subject, 'It leads to one server.')]
    : [
        {
          level: 'FAIL',
          subject,
          text:
            `It leads to ${masters.size} servers, by turns, and each keeps locks of its own: two owners may have one lock. ` +
            'Give the address of one of them.',
        },
      ];
}

/**
 * The id of a server that takes writes, which is new with each of its starts; undefined where its reply to INFO does
 * not have the id.
 */
function masterBy(info: string): string | undefined {
  return valueOf(info, 'role') === 'master' ? valueOf(info, 'run_id') : undefined;
}

async function infoOf(source: RedisSource): Promise<string> {
  const connection = new RedisConnection({ source });
  try {
    return await connection.plain.info();
  } finally {
    connection.close();
  }
}
