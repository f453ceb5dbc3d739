/** Throws the first rejection if all of `results` were rejected: one that failed must not take the others along. */
export function throwIfAllFailed(results: readonly PromiseSettledResult<unknown>[]): void {
  const failed = results.filter((result) => result.status === 'rejected');
  if (failed.length > 0 && failed.length === results.length) {
    throw failed[0]?.reason;
  }
}
