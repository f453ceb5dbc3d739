import { RedisConnection } from '../../../lib/redis/connection/redis-connection.js';
import type { RedisConnectionOptions } from '../../../lib/redis/connection/redis-source.js';
import { failure, ok, warning, type Finding } from './finding.js';
import { redisFindings } from './redis-findings.js';

/** The findings of each Sentinel about the master, and of the master itself. */
export async function sentinelFindings(
  sentinels: readonly RedisConnectionOptions[],
  source: RedisConnectionOptions,
  prefix: string,
): Promise<readonly Finding[]> {
  const master = String(source['name']);
  const count = sentinels.length;
  const [named, ofMaster] = await Promise.all([
    Promise.all(sentinels.map((sentinel, at) => askSentinel(sentinel, master, `sentinel ${at + 1} of ${count}`))),
    redisFindings(source, prefix, 'master'),
  ]);
  const addresses = new Set(named.flatMap(({ address }) => address ?? []));
  const others = named.map(({ finding }) => ofMinority(finding, addresses.size > 0));
  const split =
    addresses.size > 1
      ? [warning('sentinels', `They name different masters: ${[...addresses].join(' and ')}. That ends with the failover.`)]
      : [];
  return [...others, ...split, ...ofMaster];
}

interface Named {
  readonly finding: Finding;
  /** Where the master is; undefined where the Sentinel does not say. */
  readonly address?: string;
}

async function askSentinel(sentinel: RedisConnectionOptions, master: string, subject: string): Promise<Named> {
  const connection = new RedisConnection({ source: { ...sentinel, db: 0, enableReadyCheck: false } });
  try {
    const found = (await connection.plain.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master)) as readonly string[] | null;
    if (found) {
      const address = found.join(':');
      return { address, finding: ok(subject, `It names the master ${address}.`) };
    }
    const names = namesIn(await connection.plain.ask('SENTINEL', 'MASTERS'));
    const known = names.length > 0 ? `It watches ${names.join(', ')}: pass one to --master.` : 'It watches none.';
    return { finding: { level: 'FAIL', subject, text: `It knows no master "${master}". ${known}` } };
  } catch (error) {
    const said = failure(subject, error);
    const isServer = /unknown command/i.test(said.text);
    const text = 'The server is no Sentinel. Pass the URLs of Sentinels, or one server to --redis.';
    return { finding: isServer ? { ...said, text } : said };
  } finally {
    connection.close();
  }
}

/** The names in the reply to SENTINEL MASTERS: lists of fields and their values, or objects. */
function namesIn(masters: unknown): string[] {
  return (masters as readonly unknown[]).map((each) => {
    const fields = each as readonly string[] & Readonly<Record<string, string>>;
    return Array.isArray(each) ? (fields[fields.indexOf('name') + 1] as string) : (fields['name'] as string);
  });
}

/** One Sentinel that is away is no failure while another one names the master. */
function ofMinority(finding: Finding, isNamed: boolean): Finding {
  return finding.level === 'FAIL' && isNamed ? { ...finding, level: 'warn' } : finding;
}
