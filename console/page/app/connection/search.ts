import type { SearchStep } from '../../snapshot.js';
import { addressOf } from './addresses.js';
import { messageIn } from './messages.js';

/** Searches a store; the end of the stream ends the search. Returns what stops it. */
export function search(store: string, take: (step: SearchStep) => void): () => void {
  const address = addressOf('search');
  address.searchParams.set('store', store);
  const stream = new EventSource(address);
  stream.addEventListener('message', ({ data }: MessageEvent<string>) => {
    const step = messageIn(data);
    if (step?.kind === 'search') {
      take(step);
      if (step.ended) {
        stream.close();
      }
    }
  });
  stream.addEventListener('error', () => {
    // Or the browser would begin anew.
    stream.close();
    take({ kind: 'search', found: [], looked: 0, ended: 'failed' });
  });
  return () => stream.close();
}
