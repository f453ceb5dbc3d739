const SLOW = /no reply within \d+ ms|not ready within \d+ ms|none could be made within \d+ ms|replicas confirmed the grant/;

/** Whether a store warns of a server only because it did not answer in time: the machine may be busy. */
export function isOfSlowness(warning: string): boolean {
  return SLOW.test(warning);
}

/** Fails a test for any other warning of a store, but one that it expects. */
export function noWarning(warning: string, expected = 'no warning'): void {
  if (!isOfSlowness(warning)) {
    expect(warning).toContain(expected);
  }
}
