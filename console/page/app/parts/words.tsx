import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { printable } from '../../../../lib/core/words/shown.js';

/** Where traces are shown: an address with `{trace}` in it; undefined where the page leads to none. */
export const TraceUrl = createContext<string | undefined>(undefined);

/** A name with a value that is long and has no blanks. */
const LONG = /([^\s="(]+=[\w.:/@+-]{16,})/;
const TRACE = /^trace=[0-9a-f]{32}$/;

/** A description, or the words for a holder: long ids are shortened, but whole when copied; a trace is a link. */
export function Words({ text }: { readonly text: string }): VNode {
  const url = useContext(TraceUrl);
  const parts = printable(text).split(LONG);
  return (
    <>
      {parts.map((part, at) => {
        if (at % 2 === 0 || !/=.*\d/.test(part)) {
          return part;
        }
        const [name, id] = part.split('=') as [string, string];
        return (
          <span key={at} class="field">
            {name}=
            {url && TRACE.test(part) ? (
              <a class="id" title={id} href={url.replaceAll('{trace}', id)} target="_blank" rel="noreferrer">
                {id}
              </a>
            ) : (
              <span class="id" title={id}>
                {id}
              </span>
            )}
          </span>
        );
      })}
    </>
  );
}
