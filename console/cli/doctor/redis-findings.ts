import { RedisConnection } from '../../../lib/redis/connection/redis-connection.js';
import type { RedisSource } from '../../../lib/redis/connection/redis-source.js';
import { evictionWarning, serverWarnings } from '../../../lib/redis/server-check.js';
import { evictsBy, productBy, refusesBy, valueOf } from '../../../lib/redis/server-info.js';
import { missingRights } from '../../../lib/redis/visible-rights.js';
import { failure, fails, ok, versionFinding, warning, type Finding } from './finding.js';
import { oneServerFindings } from './one-server.js';
import { PAUSED, redisWrites } from './redis-writes.js';
import { writesFinding } from './writes-finding.js';

/** From which part of maxmemory on a server is worth a warning. */
const NEARLY_FULL = 0.9;

/**
 * Findings about a server of Redis: its settings, and whether it takes writes; `mode` is the one that it has to be in.
 * In a Cluster only a key of its own slots tells.
 */
export async function redisFindings(
  source: RedisSource,
  prefix: string,
  name: string,
  mode: 'standalone' | 'cluster' = 'standalone',
): Promise<Finding[]> {
  const connection = new RedisConnection({ source });
  try {
    const info = await connection.plain.info();
    const [wrong] = modeFindings(info, `${name}: mode`, mode);
    if (wrong) {
      return [wrong];
    }
    const found = [
      ...settings(info, name),
      ...(mode === 'cluster' ? [] : await oneServerFindings(source, info, name)),
      rightsFinding(await missingRights(connection, prefix), name),
    ];
    return mode === 'cluster' || fails(found)
      ? found
      : [...found, await writesFinding(redisWrites(connection, prefix, false), name, PAUSED)];
  } catch (error) {
    return [failure(name, error)];
  } finally {
    connection.close();
  }
}

function settings(info: string, name: string): Finding[] {
  if (info === '') {
    return [warning(`${name}: INFO`, 'The user may not ask for version, eviction and replicas. Grant +info.')];
  }
  return [
    checkedVersion(info, `${name}: version`),
    evictionFinding(info, `${name}: eviction`),
    memoryFinding(info, `${name}: memory`),
    replicasFinding(info, `${name}: replicas`),
  ];
}

/** A server in another mode than the address says keeps no locks, or only a part of them. */
function modeFindings(info: string, subject: string, mode: 'standalone' | 'cluster'): Finding[] {
  const found = valueOf(info, 'redis_mode') ?? mode;
  const text = found === mode ? undefined : WRONG_MODES[found];
  return text === undefined ? [] : [{ level: 'FAIL', subject, text }];
}

const WRONG_MODES: Readonly<Record<string, string>> = {
  cluster: 'The server is a node of a Cluster, which has a part of the locks. Pass its URL to --redis-cluster.',
  sentinel: 'The server is a Sentinel, which keeps no locks. Pass its URL to --redis-sentinel, and the name of the master to --master.',
};

function memoryFinding(info: string, subject: string): Finding {
  const [most, used] = [valueOf(info, 'maxmemory'), valueOf(info, 'used_memory')].map((value) => Number(value ?? 0)) as [number, number];
  if (refusesBy(info) === 'full') {
    return {
      level: 'FAIL',
      subject,
      text: 'It is full, so the server takes no locks. Raise maxmemory, or delete what needs no place there.',
    };
  }
  const part = most > 0 ? used / most : 0;
  const text = most > 0 ? `${Math.round(part * 100)} % of maxmemory is in use.` : 'maxmemory is not set.';
  return part < NEARLY_FULL || evictsBy(info) === true
    ? ok(subject, text)
    : warning(subject, `${text} A server that is full takes no locks: raise maxmemory.`);
}

function checkedVersion(info: string, subject: string): Finding {
  try {
    serverWarnings(info);
    return versionFinding(subject, productBy(info), 'Redis', 'Valkey');
  } catch (error) {
    return failure(subject, error);
  }
}

function evictionFinding(info: string, subject: string): Finding {
  const text = evictionWarning(info);
  return text === undefined ? ok(subject, 'It evicts nothing.') : warning(subject, text);
}

function replicasFinding(info: string, subject: string): Finding {
  if (valueOf(info, 'role') === 'slave') {
    return { level: 'FAIL', subject, text: 'The server is a replica, which takes no locks. Pass the URL of its master.' };
  }
  return ok(subject, `${valueOf(info, 'connected_slaves') ?? 0} are connected.`);
}

function rightsFinding(missing: readonly string[] | undefined, name: string): Finding {
  const subject = `${name}: rights`;
  if (!missing) {
    return warning(
      subject,
      'They cannot be seen one by one: the server is older than 7.0, or the user may not ask ACL DRYRUN. The application tries them when it starts.',
    );
  }
  return missing.length === 0
    ? ok(subject, 'The user has all that locks need.')
    : {
        level: 'FAIL',
        subject,
        text: `The user lacks ${missing.join(', ')}. Grant the rights in docs/stores/redis.md, "The smallest ACL".`,
      };
}
