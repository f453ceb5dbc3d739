#!/usr/bin/env node
import { run } from './run.js';

// `list | head` closes the pipe when it has enough.
process.stdout.on('error', () => process.exit(0));
// What drivers print by themselves, such as a right that is missing or a Sentinel that is away, the doctor says, once.
console.warn = console.error = () => undefined;
const code = await run(process.argv.slice(2), process.env);
// What was written may still be on its way; connections that hang are not waited for.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
