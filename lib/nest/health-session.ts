import { wrongOption } from '../core/words/check-options.js';
import type { HealthStatus, LockHealth } from '../core/words/lock-health.js';

/**
 * The used part of the session of a health indicator of `@nestjs/terminus`, 11 or 12. The results have a status by the
 * name of the indicator, and the other facts that are known.
 */
export interface HealthSession {
  readonly up: (data: Record<string, unknown>) => Record<string, { readonly status: 'up' }>;
  readonly down: (data: Record<string, unknown>) => Record<string, { readonly status: 'down' }>;
  /** Terminus has it since version 12. */
  readonly degraded?: (data: Record<string, unknown>) => Record<string, { readonly status: 'degraded' }>;
}

/** The result of a health indicator: by its name a status, and the other facts that are known. */
export type HealthIndication<Status extends HealthStatus = HealthStatus> = Record<
  string,
  { readonly status: Status } & Record<string, unknown>
>;

/** Throws `LockConfigurationError` for anything but a session. */
export function checkSession(session: unknown): asserts session is HealthSession {
  const { up, down } = (session ?? {}) as Partial<HealthSession>;
  if (typeof up !== 'function' || typeof down !== 'function') {
    throw wrongOption(
      'LockOperations.indicate: the session',
      session,
      "Pass check('locks') of a HealthIndicatorService of @nestjs/terminus 11 or later.",
    );
  }
}

/** Says to Terminus how the locks are. */
export function indicationBy(session: HealthSession, health: LockHealth): HealthIndication {
  // Terminus keeps the name `status` for itself.
  const { status, ...data } = health;
  if (status !== 'degraded') {
    return session[status](data);
  }
  return session.degraded ? session.degraded(data) : session.up({ ...data, degraded: true });
}
