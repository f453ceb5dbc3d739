import { RedisConnection } from '../../../lib/stores/redis/connection/redis-connection.js';
import type { RedisSource } from '../../../lib/stores/redis/connection/redis-source.js';
import { valueOf } from '../../../lib/stores/redis/server-info.js';
import { isLockError } from '../../../lib/core/words/errors.js';
import { failure, ok, warning, type Finding } from './finding.js';
import { redisFindings } from './redis-findings.js';

const SLOTS = 16_384;

/** What a Cluster says of itself, and each of its masters. */
export async function clusterFindings(source: RedisSource, prefix: string): Promise<readonly Finding[]> {
  const connection = new RedisConnection(source);
  try {
    const masters = await connection.plain.masters();
    const slots = await slotsFinding(connection);
    const each = masters.map((node) => {
      const { host, port } = node.options;
      return redisFindings(node as unknown as RedisSource, prefix, `node ${host}:${port}`, 'cluster');
    });
    return [slots, ...(await Promise.all(each)).flat()];
  } catch (error) {
    return [failure('cluster', error)];
  } finally {
    connection.close();
  }
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
