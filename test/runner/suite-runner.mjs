import { formatResultsErrors } from 'jest-message-util';
import { EmittingTestRunner } from 'jest-runner';
import { SuiteProcess } from './suite-process.mjs';

/** How long a suite may take: the longest take two minutes, and ten beside another run of the tests. */
const LIMIT_MS = 1_200_000;
/** A test that is stopped three times in a row is no accident. */
const MOST_RUNS = 3;
/** `npm run test:stress` stops all tests, and none of them may fail for it. */
const runsOnce = process.env.TEST_ONCE !== undefined;

const escape = (text) => text.replaceAll(/[$()*+./?[\\\]^{|}-]/g, String.raw`\$&`);
const patternOf = (names) => `^(${names.map(escape).join('|')})$`;

/**
 * Runs each suite in a process of its own, as many at a time as jest has workers, and kills the processes that a suite
 * has started when it ends. Where a suite leaves nothing behind, the next one runs in its process: to start one and
 * load jest takes half a second of a processor. A test that failed while its processes were stopped for longer than is
 * allowed runs again, alone, when all suites have run; a test that failed otherwise does not.
 */
export default class SuiteRunner extends EmittingTestRunner {
  #listeners = new Map();
  #globalConfig;
  #limitMs;

  constructor(globalConfig, context, { limitMs = LIMIT_MS } = {}) {
    super(globalConfig, context);
    this.#globalConfig = globalConfig;
    this.#limitMs = limitMs;
  }

  on(event, listener) {
    this.#listeners.set(event, listener);
    return () => this.#listeners.delete(event);
  }

  async runTests(tests, watcher) {
    const left = [...tests];
    const toRepeat = [];
    // One suite says what it has to say at once; the words of several are kept apart.
    const stdio = tests.length === 1 ? 'inherit' : 'pipe';
    const work = async (slot) => {
      let suiteProcess;
      for (let test = left.shift(); test !== undefined && !watcher.isInterrupted(); test = left.shift()) {
        await this.#emit('test-file-start', [test]);
        // The project of the suite says by the environment on which servers it runs.
        const { env } = test.context.config.testEnvironmentOptions;
        const options = { slot, stdio, env };
        await this.#report(test, async () => {
          suiteProcess = await this.#processFor(suiteProcess, options);
          const { result, stopped } = await suiteProcess.run(this.#task(test));
          if (runsOnce || voidTests(result, stopped).length === 0) {
            return result;
          }
          toRepeat.push(() => this.#report(test, () => this.#repeat(test, options, result, stopped)));
          return undefined;
        });
      }
      await suiteProcess?.end();
    };
    await Promise.all(Array.from({ length: this.#globalConfig.maxWorkers }, (_, slot) => work(slot + 1)));
    // One after the other, when no other suite needs a processor.
    for (const repeat of toRepeat) {
      await repeat();
    }
  }

  /** Hands on the result of a suite, where it is final. */
  async #report(test, run) {
    try {
      const result = await run();
      if (result !== undefined) {
        await this.#emit('test-file-success', [test, result]);
      }
    } catch (error) {
      await this.#emit('test-file-failure', [test, error]);
    }
  }

  /** Runs again what failed while it was stopped. */
  async #repeat(test, options, result, stopped) {
    let again = voidTests(result, stopped);
    for (let run = 2; run <= MOST_RUNS && again.length > 0; run++) {
      for (const { fullName } of again) {
        console.log(`ran again: stopped for ${stopped[fullName]} ms in one second: ${fullName}`);
      }
      const testNamePattern = patternOf(again.map(({ fullName }) => fullName));
      const suiteProcess = this.#newProcess(options);
      const next = await suiteProcess.run(this.#task(test, testNamePattern));
      await suiteProcess.end();
      replace(result, next.result, again, run);
      Object.assign(stopped, next.stopped);
      again = voidTests(next.result, next.stopped);
    }
    const { config } = test.context;
    const failureMessage = formatResultsErrors(result.testResults, config, this.#globalConfig, test.path);
    return result.testExecError ? result : { ...result, failureMessage };
  }

  /** The process that the last suite has left, where it will do for the next one. */
  async #processFor(last, options) {
    if (last?.mayGoOn && last.env === options.env) {
      return last;
    }
    await last?.end();
    return this.#newProcess(options);
  }

  #newProcess(options) {
    return new SuiteProcess({ ...options, limitMs: this.#limitMs, onEvent: (event, args) => this.#emit(event, args) });
  }

  #task(test, testNamePattern = this.#globalConfig.testNamePattern) {
    const suite = {
      path: test.path,
      config: test.context.config,
      globalConfig: { ...this.#globalConfig, testNamePattern },
      context: { changedFiles: undefined, sourcesRelatedToTestsInChangedFiles: undefined },
    };
    return { setup: { serializableResolvers: [{ config: suite.config, serializableModuleMap: test.context.moduleMap.toJSON() }] }, suite };
  }

  async #emit(event, args) {
    await this.#listeners.get(event)?.(args);
  }
}

/** The tests that failed while they were stopped. What fails outside of a test is never void. */
function voidTests({ testResults, testExecError }, stopped) {
  return testExecError ? [] : testResults.filter(({ status, fullName }) => status === 'failed' && fullName in stopped);
}

/** Puts the results of another run of some tests into the place of the earlier ones. */
function replace(result, next, tests, run) {
  const names = new Set(tests.map(({ fullName }) => fullName));
  const later = new Map(next.testResults.map((each) => [each.fullName, { ...each, invocations: run }]));
  result.testResults = result.testResults.map((each) => (names.has(each.fullName) ? (later.get(each.fullName) ?? each) : each));
  result.testExecError ??= next.testExecError;
  result.numFailingTests = result.testResults.filter(({ status }) => status === 'failed').length;
  result.numPassingTests = result.testResults.filter(({ status }) => status === 'passed').length;
}
