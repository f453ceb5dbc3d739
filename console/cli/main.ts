#!/usr/bin/env node
import { run } from './run.js';

// `list | head` closes the pipe when it has enough.
process.stdout.on('error', () => process.exit(0));
// Where the user may not ask INFO, ioredis says so on each connection; the doctor does, once.
console.warn = () => undefined;
const code = await run(process.argv.slice(2), process.env);
// What was written may still be on its way; connections that hang are not waited for.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
