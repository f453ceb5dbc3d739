import { LockConfigurationError } from '../core/errors.js';
import type { HealthStatus, LockHealth } from '../core/lock-health.js';
import { shown } from '../core/shown.js';

/** What a session tells Terminus: by the name of the indicator, a status and what else is known. */
type Indicate<Status extends HealthStatus> = (data: Record<string, unknown>) => Record<string, { readonly status: Status }>;

/** What is used of the session of a health indicator of `@nestjs/terminus`, 11 or 12. */
export interface HealthSession {
  readonly up: Indicate<'up'>;
  readonly down: Indicate<'down'>;
  /** Terminus has it since version 12. */
  readonly degraded?: Indicate<'degraded'>;
}

/** The result of a health indicator. Terminus 11 knows no `degraded`. */
export type HealthIndication<Session> = Record<
  string,
  { readonly status: Session extends { readonly degraded: unknown } ? HealthStatus : 'up' | 'down' } & Record<string, unknown>
>;

/** Throws `LockConfigurationError` for anything but a session. */
export function checkSession(session: unknown): asserts session is HealthSession {
  const { up, down } = (session ?? {}) as Partial<HealthSession>;
  if (typeof up !== 'function' || typeof down !== 'function') {
    throw new LockConfigurationError(
      `LockService.indicate: the session is ${shown(session)}. Pass indicators.check('locks'), where indicators is the ` +
        'HealthIndicatorService of @nestjs/terminus 11 or later.',
    );
  }
}

/** Says to Terminus how the locks are. */
export function indicationBy<Session extends HealthSession>(session: Session, health: LockHealth): HealthIndication<Session> {
  // Terminus keeps the name `status` for itself.
  const { status, ...data } = health;
  const result =
    status !== 'degraded' ? session[status](data) : session.degraded ? session.degraded(data) : session.up({ ...data, degraded: true });
  return result as HealthIndication<Session>;
}
