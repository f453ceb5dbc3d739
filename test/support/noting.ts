/**
 * A listener that adds the events that it hears to this list. A handle that a test left is collected, and reported,
 * while any later test runs: its event belongs in the list of the test that made the listener.
 */
export function noting<Heard>(list: Heard[]): (heard: Heard) => void {
  return (heard) => {
    list.push(heard);
  };
}
