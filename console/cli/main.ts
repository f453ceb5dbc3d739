#!/usr/bin/env node
import { run } from './run.js';

// `list | head` closes the pipe when it has enough.
process.stdout.on('error', () => process.exit(0));
const code = await run(process.argv.slice(2), process.env);
// What was written may still be on its way; connections that hang are not waited for.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
