import { BadRequestException } from '@nestjs/common';
import type { ReleaseRequest } from './snapshot.js';

/** The body of a request to release. Throws a `BadRequestException` for what is none. */
export function parseRelease(body: unknown): ReleaseRequest {
  const { store, key, fence } = (body ?? {}) as Partial<Record<keyof ReleaseRequest, unknown>>;
  if (typeof store !== 'string' || typeof key !== 'string' || key === '' || !Number.isSafeInteger(fence)) {
    throw new BadRequestException('Send the store, the key and the fence of the lock.');
  }
  return { store, key, fence: fence as number };
}
