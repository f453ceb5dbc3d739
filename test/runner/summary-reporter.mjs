// Prints the line that people and CI look for, and keeps it and what failed, so that .ci/run can add up the runs.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { SERVERS, versionOf } from '../../scripts/fetched-servers.mjs';

export default class SummaryReporter {
  #folder;

  constructor(_globalConfig, { folder = '.cache' } = {}) {
    this.#folder = folder;
  }

  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const again = results.testResults.flatMap(({ testResults }) => testResults).filter(({ invocations }) => invocations > 1);
    if (again.length > 0) {
      console.log(`Tests with a defect, which failed while their processes were stopped, and ran again: ${again.length}`);
      again.forEach(({ fullName, invocations, status }) => console.log(`  ${fullName}: ${status} in run ${invocations}`));
    }
    const isWhole = process.env.npm_lifecycle_event === 'test:long';
    const missing = Object.keys(SERVERS).filter((name) => isWhole && versionOf(name) === undefined);
    if (missing.length > 0) {
      console.log(`Not run, since they could not be fetched: the suites of ${missing.join(', ')}`);
    }
    const line = `${results.numPassedTests} passed, ${failed} failed`;
    mkdirSync(this.#folder, { recursive: true });
    const script = process.env.npm_lifecycle_event?.replace(':', '-') ?? 'jest';
    writeFileSync(join(this.#folder, `summary-${script}`), `${line}\n`);
    writeFileSync(join(this.#folder, `failed-${script}`), results.testResults.map(failuresOf).join(''));
    console.log(line);
  }
}

/** Each test of the suite that failed, or the suite itself, with the first lines of its reason. */
function failuresOf({ testFilePath, testResults, testExecError }) {
  const failed = testResults.filter(({ status }) => status === 'failed');
  const names = failed.map(({ fullName, failureMessages }) => [fullName, failureMessages.join('\n')]);
  const reasons = testExecError ? [...names, ['the suite itself', testExecError.message ?? '']] : names;
  return reasons.map(([name, reason]) => `${relative('.', testFilePath)}: ${name}\n${beginningOf(reason)}\n`).join('');
}

/** Without colours, and short enough that a log which is cut has them all. */
function beginningOf(reason) {
  return stripVTControlCharacters(reason).split('\n').slice(0, 12).map((line) => `    ${line.slice(0, 200)}`).join('\n'); // prettier-ignore
}
