import { Component, type ComponentChildren, type VNode } from 'preact';
import { printable } from '../../../../lib/core/words/shown.js';

interface BoundaryProps {
  /** Names the part inside, in words. */
  readonly what: string;
  /** When the last survey came: the next one may be shown. */
  readonly at: number | undefined;
  readonly children: ComponentChildren;
}

/** Keeps a part of the page that cannot be shown from taking the others with it. */
export class Boundary extends Component<BoundaryProps, { readonly error: unknown }> {
  override state = { error: undefined };

  static override getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override componentDidUpdate({ at }: BoundaryProps): void {
    if (this.state.error !== undefined && at !== this.props.at) {
      this.setState({ error: undefined });
    }
  }

  override render(): VNode {
    const { what, children } = this.props;
    const { error } = this.state;
    return error === undefined ? (
      <>{children}</>
    ) : (
      <div class="notice bad" role="alert">
        <p>
          <strong>{what} cannot be shown.</strong> It has what this page does not know ({printable(String(error))}). Reload the page.
        </p>
      </div>
    );
  }
}
