import type { VNode } from 'preact';
import { counted, span } from '../model/format.js';
import type { State } from '../model/state.js';
import { troubleWords } from '../model/trouble-words.js';

/** Ages below are not told, in milliseconds: a trouble that no process knows the age of was seen just now. */
const SHORTEST_MS = 1_000;

/** Says on every view what is wrong with a store, for how long, and what follows from it. */
export function StoreNotices({ state: { stores }, now }: { readonly state: State; readonly now: number }): VNode {
  return (
    <>
      {stores.flatMap(({ name, condition, troubles, failed, processes, silent }) =>
        troubles.map((trouble) => {
          const [what, consequence] = troubleWords(trouble, troubles);
          const asked = [...processes.keys()].filter((id) => !silent.includes(id)).length;
          return (
            <div class={condition === 'degraded' ? 'notice warn' : 'notice bad'} role="status" key={`${name} ${trouble.reason}`}>
              <p>
                <strong>
                  The store “{name}” {what}
                </strong>
                {failed && ` (${failed})`}. {consequence}
              </p>
              <p class="age">
                {trouble.saidBy.length > 0 &&
                  asked > 1 &&
                  `seen by ${trouble.saidBy.length} of ${counted(asked, 'process', 'processes')}, `}
                {ageWords(now - trouble.since)}
              </p>
            </div>
          );
        }),
      )}
    </>
  );
}

/** For how long it has been there; none at first where no process knows. */
function ageWords(ms: number): string {
  return ms < SHORTEST_MS ? 'since a moment ago' : `for ${span(ms)}`;
}
