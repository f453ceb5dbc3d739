import { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import type { Address } from '../address/address.js';
import type { Finding } from '../doctor/finding.js';
import { redisFindings } from '../doctor/redis-findings.js';
import type { NewStore } from './new-store.js';
import { end, sourceOf } from './redis.js';
import { serverNames } from './server-names.js';

export async function newQuorumStore(address: Address): Promise<NewStore> {
  const sources = await Promise.all(address.urls.map((url) => sourceOf(url, address)));
  const names = serverNames(sources);
  const findings = async (prefix: string): Promise<readonly Finding[]> => {
    const each = await Promise.all(sources.map((source, at) => redisFindings(source, prefix, names[at] as string)));
    return each.flat().map(ofMinority);
  };
  return { store: new QuorumLockStore(sources), findings, end };
}

/** A quorum goes on without one of its servers; whether it has a majority, the store says. */
function ofMinority(finding: Finding): Finding {
  return finding.level === 'FAIL' ? { ...finding, level: 'warn' } : finding;
}
