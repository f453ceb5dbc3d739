/**
 * An object that is in one chain at most. A `Set` that grows and shrinks all the time leaves a chain of former tables behind: once the
 * first of them is old, V8's collector of young garbage keeps all that has been in any of them.
 */
export class Link {
  #before: Link = this;
  #after: Link = this;

  get isLinked(): boolean {
    return this.#after !== this;
  }

  /** Becomes the last of the chain that begins with `head`, which is no member itself. */
  linkTo(head: Link): void {
    this.#before = head.#before;
    this.#after = head;
    head.#before.#after = this;
    head.#before = this;
  }

  /** Leaves its chain. It then refers to none of the others. */
  unlink(): void {
    this.#before.#after = this.#after;
    this.#after.#before = this.#before;
    this.#before = this;
    this.#after = this;
  }

  /** The members of the chain that begins with it, as they are now. */
  get members(): Link[] {
    const members: Link[] = [];
    for (let at = this.#after; at !== this; at = at.#after) {
      members.push(at);
    }
    return members;
  }
}
