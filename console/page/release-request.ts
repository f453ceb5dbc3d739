import { BadRequestException } from '@nestjs/common';
import type { ReleaseRequest } from './snapshot.js';

/** How long a reason may be, in characters. */
const MOST_REASON = 200;

/** The body of a request to release. Throws a `BadRequestException` for what is none. */
export function parseRelease(body: unknown): ReleaseRequest {
  const { store, key, fence, reason } = (body ?? {}) as Partial<Record<keyof ReleaseRequest, unknown>>;
  if (typeof store !== 'string' || typeof key !== 'string' || key === '' || !Number.isSafeInteger(fence)) {
    throw new BadRequestException('Send the store, the key and the fence of the lock.');
  }
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > MOST_REASON) {
    throw new BadRequestException(`Send the reason of the release, in ${MOST_REASON} characters at most.`);
  }
  return { store, key, fence: fence as number, reason: reason.trim() };
}
