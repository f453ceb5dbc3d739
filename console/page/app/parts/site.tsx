import type { VNode } from 'preact';
import { Words } from './words.js';

interface SiteProps {
  readonly call: { readonly site: string; readonly description?: string | undefined };
}

/** Where a call stands in the code, and what it is made for. */
export function Site({ call: { site, description } }: SiteProps): VNode {
  return (
    <>
      <span class="site">
        <Words text={site} />
      </span>
      {description !== undefined && (
        <span class="under mono">
          <Words text={description} />
        </span>
      )}
    </>
  );
}
