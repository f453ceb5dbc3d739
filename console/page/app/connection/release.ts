import type { ReleaseAnswer, ReleaseRequest } from '../../snapshot.js';
import { addressOf } from './addresses.js';

/** The result of a release by force. */
export type ReleaseOutcome = ReleaseAnswer['outcome'] | 'forbidden' | 'failed';

export async function release(request: ReleaseRequest): Promise<ReleaseOutcome> {
  try {
    const response = await fetch(addressOf('release'), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-lock-page': '1' },
      body: JSON.stringify(request),
    });
    if (response.ok) {
      return ((await response.json()) as ReleaseAnswer).outcome;
    }
    if (response.status === 404) {
      return 'free';
    }
    return response.status === 401 || response.status === 403 ? 'forbidden' : 'failed';
  } catch {
    return 'failed';
  }
}
