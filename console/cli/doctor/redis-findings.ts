import { RedisConnection } from '../../../lib/stores/redis/connection/redis-connection.js';
import { evictsBy, serverWarnings, valueOf } from '../../../lib/stores/redis/server-check.js';
import { missingRights } from '../../../lib/stores/redis/visible-rights.js';
import { failure, ok, warning, type Finding } from './finding.js';

/** What a server of Redis says of itself, without writing. */
export async function redisFindings(url: string, prefix: string, name: string): Promise<Finding[]> {
  const connection = new RedisConnection(url);
  try {
    const info = await connection.info();
    return [...settings(info, name), rightsFinding(await missingRights(connection, prefix), name)];
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
  return [versionFinding(info, `${name}: version`), evictionFinding(info, `${name}: eviction`), replicasFinding(info, `${name}: replicas`)];
}

function versionFinding(info: string, subject: string): Finding {
  try {
    serverWarnings(info);
    return ok(subject, `Redis ${valueOf(info, 'redis_version') ?? 'of an unknown version'}.`);
  } catch (error) {
    return failure(subject, error);
  }
}

function evictionFinding(info: string, subject: string): Finding {
  const [text] = evictsBy(info) === true ? serverWarnings(info) : [];
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
      'They cannot be seen without writing: the server is older than 7.0, or the user may not ask ACL DRYRUN. The application tries them when it starts.',
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
