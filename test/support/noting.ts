/**
 * A listener that adds what it hears to this list. A handle that a test left is collected, and reported, while any later test runs: what is
 * heard belongs in the list of the test that made the listener.
 */
export function noting<Heard>(list: Heard[]): (heard: Heard) => void {
  return (heard) => {
    list.push(heard);
  };
}
