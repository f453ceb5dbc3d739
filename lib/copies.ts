const COPY = Symbol.for('nestjs-distributed-lock:copy');

/**
 * Warns where the package is loaded a second time in one process, naming both places: locks of one copy are not seen as
 * held by code that uses the other.
 */
export function warnOfSecondCopy(): void {
  const place = placeOfThisFile();
  const copies = globalThis as { [COPY]?: string };
  const other = copies[COPY];
  if (other === undefined) {
    copies[COPY] = place;
  } else if (other !== place) {
    process.emitWarning(
      `nestjs-distributed-lock is loaded twice, from ${other} and from ${place}: calls do not re-enter across the two. ` +
        'Make sure that one version is installed, and that all code loads it the same way.',
      'LockWarning',
    );
  }
}

/** The stack names the file in both module formats; line and column keep two copies in one bundle apart. */
function placeOfThisFile(): string {
  const line = new Error().stack?.split('\n')[1] ?? '';
  return /(?:file:\/\/)?((?:\/|[A-Za-z]:)[^():]+:\d+:\d+)/.exec(line)?.[1] ?? line.trim();
}
