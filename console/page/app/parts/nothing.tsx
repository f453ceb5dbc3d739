import type { ComponentChildren, VNode } from 'preact';
import type { State } from '../model/state.js';
import { Empty } from './empty.js';

interface NothingProps {
  readonly state: State;
  readonly title: string;
  /** Why there is nothing to show, where that is known. */
  readonly children: ComponentChildren;
}

/** Says that there is nothing, which only stores that were heard can say. */
export function Nothing({ state: { stores }, title, children }: NothingProps): VNode {
  const unheard = stores.filter(({ isHeard }) => !isHeard).map(({ name }) => `“${name}”`);
  return unheard.length === 0 ? (
    <Empty title={title}>{children}</Empty>
  ) : (
    <Empty title="Not known">
      {unheard.length === 1 ? `The store ${unheard[0]} was` : `The stores ${unheard.join(', ')} were`} not heard: what other processes hold
      and wait for cannot be seen.
    </Empty>
  );
}
