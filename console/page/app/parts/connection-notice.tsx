import type { VNode } from 'preact';
import type { State } from '../model/state.js';

/** Says what keeps the page from showing what is now. */
export function ConnectionNotice({ state: { connection, stores } }: { readonly state: State }): VNode {
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
      {connection === 'polling' && (
        <div class="notice" role="status">
          <p>The live stream is broken, so the page asks every two seconds.</p>
        </div>
      )}
      {stores
        .filter(({ failed }) => failed !== undefined)
        .map(({ name, failed }) => (
          <div class="notice bad" role="status" key={name}>
            <p>
              <strong>The store “{name}” could not be asked</strong> ({failed}). What you see of it is old.
            </p>
          </div>
        ))}
    </>
  );
}
