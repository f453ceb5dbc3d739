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
// What drivers print by themselves, such as a right that is missing or a Sentinel that is away, the doctor says, once.
console.warn = console.error = () => undefined;
const code = await run(process.argv.slice(2), process.env);
await written(process.stdout);
await written(process.stderr);
// Connections that hang are not waited for.
process.exit(code === 0 && !isWritten ? 3 : code);

/** What was written may still be on its way, and so may the error that it was not. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => setImmediate(resolve)));
}
