#!/usr/bin/env node
import { tell } from './output.js';
import { run } from './run.js';

let isWritten = true;
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // `list | head` closes the pipe when it has enough.
  if (code !== 'EPIPE' && isWritten) {
    isWritten = false;
    tell(`The output could not be written: ${message}`);
  }
});
// The exit code says it all the same.
process.stderr.on('error', () => undefined);
// The doctor reports everything that drivers print by themselves, such as a missing right or a Sentinel that is away,
// once.
console.warn = console.error = () => undefined;
const code = await run(process.argv.slice(2), process.env);
await written(process.stdout);
await written(process.stderr);
// Connections that hang are not waited for.
process.exit(code === 0 && !isWritten ? 3 : code);

/** Waits for written text that may still be on its way, and for the error of a failed write. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => setImmediate(resolve)));
}
