import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useInspected } from '../connection/inspect.js';
import { release, type ReleaseOutcome } from '../connection/release.js';
import { printable } from '../../../../lib/core/words/shown.js';
import { counted } from '../model/format.js';
import { known } from '../model/known-word.js';
import type { LockRow } from '../model/lock-rows.js';
import { LockFacts } from './lock-facts.js';
import type { Tone } from './pill.js';

const ANSWERS: Readonly<Record<ReleaseOutcome, readonly [Tone, string]>> = {
  released: ['good', 'Released. Its holder is being told.'],
  later: ['warn', 'Not released: another call has the lock now.'],
  free: ['warn', 'Nobody holds the lock at this fence any more.'],
  forbidden: ['bad', 'Not released: you may not do this, or your session has expired. Reload the page.'],
  failed: ['bad', 'Not known: there was no answer.'],
};

interface ReleaseDialogProps {
  readonly row: LockRow;
  readonly now: number;
  /** Whether keys are hashes, by which the store knows nothing. */
  readonly hidesKeys: boolean;
  readonly close: () => void;
}

/**
 * Asks before a lock is released by force: the key has to be typed, and the fence is sent, so that a later holder is
 * safe.
 */
export function ReleaseDialog({ row, now, hidesKeys, close }: ReleaseDialogProps): VNode {
  const inspected = useInspected(row.store.name, row.key, !hidesKeys);
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const [reason, setReason] = useState('');
  const [outcome, setOutcome] = useState<ReleaseOutcome | 'sent'>();
  useEffect(() => dialog.current?.showModal(), []);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setOutcome('sent');
    setOutcome(await release({ store: row.store.name, key: row.key, fence: row.fence ?? 0, reason }));
  };
  // A key that is shown escaped can be typed as it is shown.
  const isConfirmed = (typed === row.key || typed === printable(row.key)) && reason.trim() !== '';
  const isAnswered = outcome !== undefined && outcome !== 'sent';
  const [tone, text] = known(ANSWERS, String(outcome)) ?? ['warn', `The application answered “${printable(String(outcome))}”.`];
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="release-title">
      <form method="dialog" onSubmit={(event) => void send(event)}>
        <h2 id="release-title">Release this lock by force?</h2>
        <LockFacts lockKey={row.key} row={row} inspected={inspected} now={now} />
        {!isAnswered && (
          <>
            <p class="notice warn">
              <span>
                {row.shares && 'All that share it are taken out. '}
                <strong>Its code runs on until it hears of it.</strong> Until then it runs beside the next holder
                {row.waiting.length > 0 && `: ${counted(row.waiting.length, 'call')} would go on`}.
              </span>
            </p>
            <label>
              Why? The log and the incidents have it
              <input value={reason} maxLength={200} onInput={({ currentTarget }) => setReason(currentTarget.value)} autocomplete="off" />
            </label>
            <label>
              Type the key to confirm
              <input
                class="mono"
                value={typed}
                onInput={({ currentTarget }) => setTyped(currentTarget.value)}
                autocomplete="off"
                spellcheck={false}
              />
            </label>
          </>
        )}
        <p role="status" class={isAnswered ? `answer ${tone}` : 'hidden'}>
          {isAnswered && text}
        </p>
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {isAnswered ? 'Close' : 'Cancel'}
          </button>
          {!isAnswered && (
            <button type="submit" class="danger" disabled={!isConfirmed || outcome === 'sent'}>
              Release
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}
