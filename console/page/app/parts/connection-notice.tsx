import type { VNode } from 'preact';
import { pageStatus, type PageStatus } from '../model/page-status.js';
import type { State } from '../model/state.js';

/** A state of the connection that keeps the page from showing what is now, and its consequence. */
const NOTICES: Partial<Readonly<Record<PageStatus, readonly [tone: string, what: string, consequence: string]>>> = {
  expired: ['bad', 'Your session has expired.', 'What you see is old.'],
  broken: ['warn', 'The application does not answer.', 'What you see is old. Trying again every two seconds.'],
  stale: ['warn', 'The application sends no news.', 'What you see is old.'],
  polling: ['', '', 'The live stream is broken, so the page asks every two seconds.'],
};

/** Says what keeps the page from showing what is now: what the stores say is no news then. */
export function ConnectionNotice({ state, now }: { readonly state: State; readonly now: number }): VNode | null {
  const status = pageStatus(state, now);
  const [tone, what, consequence] = NOTICES[status] ?? NOTICES[state.connection] ?? [];
  return consequence === undefined ? null : (
    <div class={`notice ${tone}`} role={status === 'expired' ? 'alert' : 'status'}>
      <p>
        <strong>{what}</strong> {consequence}
      </p>
      {status === 'expired' && (
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      )}
    </div>
  );
}
