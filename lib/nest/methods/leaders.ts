import type { ModulesContainer } from '@nestjs/core';
import type { Candidate } from '../../leader/candidate.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import type { Lock } from '../../core/words/lock.js';
import { leaderMarksOf, type LeaderMark, type LeaderMethod } from './leader.decorator.js';
import { lockServiceOf, serviceOfStore } from './locked-instance.js';
import type { LockService } from '../lock.service.js';
import { madeByNest } from '../application/made-by-nest.js';

/** The facts that Nest knows of a provider or controller. */
interface Provider {
  readonly instance: unknown;
  readonly isTransient: boolean;
  isDependencyTreeStatic(): boolean;
}

/**
 * Makes a candidate of each method that `@Leader` marks. Throws `LockConfigurationError`, before any of them stands by,
 * for an instance that is not the only one of its provider, or has no locks.
 */
export function startLeaders(modules: ModulesContainer): Candidate[] {
  const starts: (() => Candidate | undefined)[] = [];
  const seen = new Set<object>();
  for (const provider of madeByNest(modules) as Provider[]) {
    const { instance } = provider;
    // An alias of a provider has the same instance.
    if (typeof instance === 'object' && instance !== null && !seen.has(instance)) {
      seen.add(instance);
      for (const mark of leaderMarksOf(instance)) {
        starts.push(startOf(mark, instance, provider));
      }
    }
  }
  // A replaced service may answer nothing.
  return starts.map((start) => start()).filter((candidate) => candidate !== undefined);
}

function startOf({ method, site, store, key, options }: LeaderMark, instance: object, provider: Provider): () => Candidate | undefined {
  if (provider.isTransient || !provider.isDependencyTreeStatic()) {
    throw new LockConfigurationError(
      `${site}: @Leader() does not work on a provider that is made for each request, or each time it is injected, itself or by what it ` +
        'injects: there is no one instance that could lead. Move the method to a singleton.',
    );
  }
  refuseSchedule(site, (instance as { readonly [name: string | symbol]: unknown })[method]);
  const service = lockServiceOf(instance);
  if (!service) {
    throw new LockConfigurationError(
      `${site}: @Leader() has no LockService, since Nest did not make this instance. ` +
        'Make the class itself a provider, or call lockService.attach(instance) in its factory.',
    );
  }
  const locks = serviceOfStore(service, { site, store }) as Partial<LockService>;
  const code = async (lock: Lock): Promise<unknown> => (instance as { readonly [name: string | symbol]: LeaderMethod })[method]?.(lock);
  return () => locks.lead?.(key, code, options);
}

/** The metadata that `@Cron`, `@Interval` and `@Timeout` of `@nestjs/schedule` leave on a method. */
const SCHEDULER_TYPE = 'SCHEDULER_TYPE';

function refuseSchedule(site: string, method: unknown): void {
  if (typeof method === 'function' && Reflect.hasMetadata(SCHEDULER_TYPE, method)) {
    throw new LockConfigurationError(
      `${site}: @Leader() and a schedule, such as @Cron(), are on one method: each process would start it at its time, whether it leads or not. ` +
        'Use @DistributedLock() for a job that one process is to run at its time, or let the leader make the schedule (docs/leader.md).',
    );
  }
}
