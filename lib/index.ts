import { warnOfSecondCopy } from './copies.js';

warnOfSecondCopy();

export { DistributedLock } from './nest/methods/distributed-lock.decorator.js';
export type { DistributedLockOptions, LockableMethod } from './nest/methods/distributed-lock.options.js';
export { DistributedSemaphore, type DistributedSemaphoreOptions } from './nest/methods/distributed-semaphore.decorator.js';
export { Leader, type LeaderMethod, type LeaderOptions } from './nest/methods/leader.decorator.js';
export { LockKey } from './nest/methods/lock-key.decorator.js';
export type { ReturnKind } from './nest/methods/return-kind.js';
export { LockModule } from './nest/lock.module.js';
export { InjectLocks } from './nest/lock.module-definition.js';
export type { LockModuleOptions, LockOptionsFactory, LockTestController, LockTestOptions } from './nest/lock-module.options.js';
export { LockOperations, LockService } from './nest/lock.service.js';
export type { PermitOptions, WithLockOptions, WithPermitOptions } from './nest/lock-service.options.js';
export type { LockInspection } from './nest/lock.operations.js';
export type { ForceReleaseOptions, HealthOptions, IncidentOptions, ListOptions } from './nest/lock-operations.options.js';
export type { OnBusy, OnUnavailableOf, UnavailableError } from './nest/refused-call.js';
export type { HealthIndication, HealthSession } from './nest/health-session.js';
export { LockExceptionFilter } from './nest/lock-exception.filter.js';
export { assertLocked, currentLock } from './nest/current-lock.js';
export { makeTickets, enterTickets, type EnterTicketsOptions } from './nest/current-tickets.js';
export { outsideLocks } from './core/calls/call-tree.js';
export { lockKey } from './core/words/lock-key.js';
export { TransactionScope } from './core/transactions/transaction-scope.js';
export type { TransactionEnd } from './core/transactions/transactions.js';
export type { HoldMode, LockMode, LockOptions, OnUnavailable, Shares } from './core/words/call-options.js';
export type { Duration } from './core/words/duration.js';
export type { Lock, Permit } from './core/words/lock.js';
export type { Candidate, LeadOptions } from './leader/candidate.js';
export {
  isLockError,
  LockConfigurationError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockStoreError,
  type LockErrorBody,
  type LockErrorCode,
  type LockHolder,
  type LostReason,
  type NotAcquiredReason,
} from './core/words/errors.js';
export type { HealthReason, HealthStatus, LockHealth, MemberHealth, StoreHealth } from './core/words/lock-health.js';
export type { Describe, Description } from './core/words/description.js';
export type { LockedSection, LockSource, LockTelemetry, MeasuredOperation, StoreOperation } from './core/words/lock-telemetry.js';
export type { Cycle, CycleCall } from './core/words/cycle-call.js';
export type { LeftOut, ListedLock, LockList } from './operate/peers/lock-list.js';
export type { IncidentType, LockIncident, LockProcess } from './operate/peers/survey.js';
export { LOCK_CHANNEL, type ForcedBy, type LeaderChange, type LockEvent, type RefusedReason } from './core/words/lock-event.js';
export type {
  AcquireReply,
  Busy,
  ForcedListener,
  FoundLock,
  HoldRecord,
  LockStore,
  Messages,
  OpenOptions,
  Operator,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from './core/seam/lock-store.js';
export { MemoryLockStore, type MemoryLockStoreOptions } from './memory/memory-lock-store.js';
export { RedisLockStore } from './redis/redis-lock-store.js';
export type { RedisLockStoreOptions } from './redis/redis-lock-store.options.js';
export type { CredentialsFunction, RedisCredentials } from './redis/connection/credentials.js';
export type {
  NodeRedisClient,
  NodeRedisCluster,
  RedisClient,
  RedisConnectionOptions,
  RedisSource,
} from './redis/connection/redis-source.js';
