import { RedisConnection } from '../../../lib/redis/connection/redis-connection.js';
import type { RedisSource } from '../../../lib/redis/connection/redis-source.js';
import { slotOfKey, topologyIn } from '../../../lib/redis/connection/node-redis/cluster-slots.js';
import { RedisKeys } from '../../../lib/redis/scripts/redis-keys.js';
import { valueOf } from '../../../lib/redis/server-info.js';
import { isLockError } from '../../../lib/core/words/errors.js';
import { failure, ok, warning, type Finding } from './finding.js';
import { redisFindings } from './redis-findings.js';
import { PAUSED, redisWrites } from './redis-writes.js';
import { OWN_KEY, writesFinding } from './writes-finding.js';

const SLOTS = 16_384;
/** How many keys are looked at for one in the slots of a master: hundreds of masters find one each. */
const MOST_KEYS = 10_000;

/** The findings of a Cluster, and of each of its masters. */
export async function clusterFindings(source: RedisSource, prefix: string): Promise<readonly Finding[]> {
  const connection = new RedisConnection({ source });
  try {
    const masters = await connection.plain.masters();
    const slots = await slotsFinding(connection);
    const each = masters.map((node) => {
      const { host, port } = node.options;
      return redisFindings(node as unknown as RedisSource, prefix, `node ${host}:${port}`, 'cluster');
    });
    const [said, written] = [(await Promise.all(each)).flat(), await writesFindings(connection, prefix)];
    return [slots, ...said, ...written];
  } catch (error) {
    return [failure('cluster', error)];
  } finally {
    connection.close();
  }
}

/** Whether each master that has slots takes writes, by a key in one of them. */
async function writesFindings(connection: RedisConnection, prefix: string): Promise<readonly Finding[]> {
  const { slots } = topologyIn(await connection.plain.ask('CLUSTER', 'SLOTS'), '');
  const masters = new Set(slots.filter((address) => address !== undefined));
  const keys = new RedisKeys((await connection.plain.keyPrefix()) + prefix, true);
  const found = new Map<string, string>();
  for (let at = 1; at <= MOST_KEYS && found.size < masters.size; at++) {
    const key = `${OWN_KEY}:${at}`;
    const master = slots[slotOfKey(keys.lock(keys.tag(key)))];
    if (master !== undefined && !found.has(master)) {
      found.set(master, key);
    }
  }
  const writes = redisWrites(connection, prefix, true);
  return Promise.all([...found].map(([master, key]) => writesFinding(writes, `node ${master}`, PAUSED, key)));
}

/** Whether a node serves each slot: the locks of the others fail. */
async function slotsFinding(connection: RedisConnection): Promise<Finding> {
  const subject = 'cluster: slots';
  try {
    const info = String(await connection.plain.ask('CLUSTER', 'INFO'));
    const served = Number(valueOf(info, 'cluster_slots_ok'));
    return valueOf(info, 'cluster_state') === 'ok' && served === SLOTS
      ? ok(subject, 'Each slot has a node.')
      : {
          level: 'FAIL',
          subject,
          text: `${SLOTS - served} of ${SLOTS} slots have no node, so their locks fail. Start the nodes that are away: see CLUSTER NODES.`,
        };
  } catch (error) {
    if (isLockError(error) && error.code === 'LOCK_CONFIGURATION') {
      return warning(subject, 'The user may not ask whether each slot has a node. Grant +cluster|info.');
    }
    throw error;
  }
}
