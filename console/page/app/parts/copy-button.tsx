import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

const SHOWN_MS = 1_500;

/**
 * Copies a text as it is, also where it is shown escaped. Without a clipboard, as on plain HTTP, there is no button.
 */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }): VNode | null {
  const [isCopied, setIsCopied] = useState(false);
  const clipboard = (navigator as Partial<Navigator>).clipboard;
  const copy = async (): Promise<void> => {
    await clipboard?.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), SHOWN_MS);
  };
  return clipboard ? (
    <button type="button" class="quiet copy" onClick={() => void copy().catch(() => undefined)} aria-label={`Copy the ${what}`}>
      {isCopied ? 'Copied' : 'Copy'}
    </button>
  ) : null;
}
