// Stryker's way to the suites: they are loaded once for each process, and a mutant is switched on between two runs.
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin';
import { DryRunStatus, TestStatus, determineHitLimitReached, toMutantRunResult } from '@stryker-mutator/api/test-runner';
import { register } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { watch } from './watchdog.mjs';

const urlOf = (file) => pathToFileURL(resolve(file)).href;

class Runner {
  #harness;
  #suites;
  /** The only suites to run, where the command names some. */
  #files;
  /** The object by which the instrumented sources and Stryker talk to each other. */
  // oxlint-disable-next-line no-underscore-dangle
  #mutants = (globalThis.__stryker__ ??= {});

  /** Another process is started where a mutant has to be there as a module is loaded. */
  capabilities() {
    return { reloadEnvironment: false };
  }

  async init() {
    watch();
    // The working directory is the copy of the project that has the mutants.
    register(urlOf('test/mutation/hooks.mjs'));
    this.#harness = await import(urlOf('test/mutation/harness.mjs'));
    this.#suites = await import(urlOf('test/mutation/suites.mjs'));
  }

  async dryRun({ coverageAnalysis, disableBail, testFiles }) {
    this.#files = testFiles?.map((file) => resolve(file));
    this.#mutants.activeMutant = undefined;
    const result = await this.#run((id) => this.#isWanted(id), disableBail);
    return { ...result, ...(coverageAnalysis !== 'off' && { mutantCoverage: this.#mutants.mutantCoverage }) };
  }

  async mutantRun({ activeMutant, testFilter, mutantActivation, hitLimit, disableBail }) {
    if (mutantActivation === 'static') {
      this.#mutants.activeMutant = activeMutant.id;
    }
    await this.#load();
    this.#mutants.hitCount = hitLimit === undefined ? undefined : 0;
    this.#mutants.hitLimit = hitLimit;
    this.#mutants.activeMutant = activeMutant.id;
    const chosen = testFilter && new Set(testFilter);
    const result = await this.#run((id) => !chosen || chosen.has(id), disableBail);
    const isEndless = determineHitLimitReached(this.#mutants.hitCount, hitLimit);
    return toMutantRunResult(isEndless ?? result, true);
  }

  #isAsked(file) {
    return !this.#files?.length || this.#files.includes(resolve(file));
  }

  #isWanted(id) {
    return !this.#suites.LEFT_OUT.some((part) => id.includes(part));
  }

  async #load() {
    if (this.#harness.tests.length === 0) {
      for (const file of this.#suites.SUITES.filter((each) => this.#isAsked(each))) {
        await this.#harness.load(urlOf(file), file);
      }
    }
  }

  async #run(isChosen, goesOn) {
    await this.#load();
    const tests = [];
    await this.#harness.runAll(
      this.#harness.tests.filter(({ id }) => isChosen(id)),
      {
        goesOn,
        started: ({ id }) => {
          this.#mutants.currentTestId = id;
        },
        ended: ({ id }, timeSpentMs, failureMessage) => {
          const status = failureMessage === undefined ? TestStatus.Success : TestStatus.Failed;
          tests.push({ id, name: id, timeSpentMs, status, failureMessage });
        },
      },
    );
    this.#mutants.currentTestId = undefined;
    return { status: DryRunStatus.Complete, tests };
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'one-process', Runner)];
