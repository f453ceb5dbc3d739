import type { VNode } from 'preact';
import { pageStatus } from '../model/page-status.js';
import type { State } from '../model/state.js';

/** Says what keeps the page from showing what is now. */
export function ConnectionNotice({ state, now }: { readonly state: State; readonly now: number }): VNode {
  const { connection } = state;
  return (
    <>
      {connection === 'expired' && (
        <div class="notice bad" role="alert">
          <p>
            <strong>Your session has expired.</strong> What you see is old.
          </p>
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      )}
      {connection === 'broken' && (
        <div class="notice warn" role="status">
          <p>
            <strong>The application does not answer.</strong> What you see is old. Trying again every two seconds.
          </p>
        </div>
      )}
      {pageStatus(state, now) === 'stale' && (
        <div class="notice warn" role="status">
          <p>
            <strong>The application sends no news.</strong> What you see is old.
          </p>
        </div>
      )}
      {connection === 'polling' && (
        <div class="notice" role="status">
          <p>The live stream is broken, so the page asks every two seconds.</p>
        </div>
      )}
    </>
  );
}
