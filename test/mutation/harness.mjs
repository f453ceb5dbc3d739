// The part of jest that the suites use, in the process of the mutants: a module is loaded once for thousands of runs.
import { ModernFakeTimers } from '@jest/fake-timers';
import { expect } from 'expect';
import { fn, ModuleMocker, spyOn } from 'jest-mock';
import { format } from 'node:util';
import { startTime, stopTime } from '../support/virtual-time.ts';
import { IN_PLAYED_TIME } from './suites.mjs';

/**
 * A test that takes longer is stuck: in real time, and in time that is played, which passes at once where nothing else
 * happens.
 */
const [LONGEST_MS, LONGEST_PLAYED_MS] = [2_000, 300_000];
/** How long it may still wait for what is no timer. */
const GRACE_MS = 150;

const clock = new ModernFakeTimers({ config: { rootDir: process.cwd(), fakeTimers: {} }, global: globalThis });
const { setTimeout, clearTimeout } = globalThis;
const now = performance.now.bind(performance);
const mocker = new ModuleMocker(globalThis);
const spies = new Set();

export const jest = {
  fn,
  spyOn: (...parameters) => {
    const spy = spyOn(...parameters);
    // Whoever plays time ends it, which may be after the test.
    if (parameters[0] !== AbortSignal) {
      spies.add(spy);
    }
    return spy;
  },
  mocked: (source) => source,
  isMockFunction: (value) => mocker.isMockFunction(value),
  useFakeTimers: (options) => clock.useFakeTimers(options),
  useRealTimers: () => clock.useRealTimers(),
  advanceTimersByTime: (ms) => clock.advanceTimersByTime(ms),
  advanceTimersByTimeAsync: (ms) => clock.advanceTimersByTimeAsync(ms),
  setTimerTickMode: (mode) => clock.setTimerTickMode(mode),
  getTimerCount: () => clock.getTimerCount(),
  setSystemTime: (time) => clock.setSystemTime(time),
  now: () => clock.now(),
};

/** The tests of all suites, in the order in which they were declared. */
export const tests = [];
let block;

const newBlock = (name, parent) => ({
  name,
  parent,
  hooks: { beforeAll: [], afterAll: [], beforeEach: [], afterEach: [] },
});

export function describe(name, declare) {
  const parent = block;
  block = newBlock(parent.name ? `${parent.name} ${name}` : name, parent);
  declare();
  block = parent;
}

export function test(name, run) {
  const file = fileOf(block);
  tests.push({ id: `${file}: ${block.name ? `${block.name} ` : ''}${name}`, file, block, run });
}

test.skip = () => undefined;
describe.skip = () => undefined;

const fileOf = ({ file, parent }) => file ?? fileOf(parent);

function each(declare) {
  return (rows) => (name, run) => {
    rows.forEach((row, index) => {
      const values = Array.isArray(row) ? row : [row];
      declare(titleOf(name, row, values, index), () => run(...values));
    });
  };
}

function titleOf(name, row, values, index) {
  const named = name.replace(/\$(\w+)/g, (whole, key) => (Object(row) === row && key in row ? String(row[key]) : whole));
  const places = named.match(/%[sdifjoOp]/g)?.length ?? 0;
  return format(named.replace(/%p/g, '%o'), ...values.slice(0, places)).replace('%#', String(index));
}

describe.each = each(describe);
test.each = each(test);

const hookOf = (kind) => (run) => void block.hooks[kind].push(run);
export const beforeAll = hookOf('beforeAll');
export const afterAll = hookOf('afterAll');
export const beforeEach = hookOf('beforeEach');
export const afterEach = hookOf('afterEach');
export { expect };

Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it: test, test });

/** Declares the tests of a suite. */
export async function load(url, file) {
  block = { ...newBlock('', undefined), file };
  await import(url);
}

/** The blocks around a test, the outermost first. */
const around = (one) => (one ? [...around(one.parent), one] : []);

/**
 * Runs tests, and tells `started` and `ended` of each. Ends with the first test that fails, unless it is told to go on.
 * A block is set up before the first of its tests and torn down after the last.
 */
export async function runAll(chosen, { started = () => undefined, ended, goesOn }) {
  const entered = [];
  const leave = async (least) => {
    while (entered.length > least) {
      await within(runSteps(entered.pop().hooks.afterAll.toReversed())).catch(() => undefined);
    }
    if (least === 0) {
      stopTime();
      isPlayed = false;
    }
  };
  for (const one of chosen) {
    const blocks = around(one.block);
    const shared = blocks.findIndex((outer, index) => entered[index] !== outer);
    await leave(shared < 0 ? blocks.length : shared);
    started(one);
    const startedAt = now();
    const failure = await failureOf(one, blocks, entered);
    ended(one, now() - startedAt, failure);
    if (failure !== undefined && !goesOn) {
      break;
    }
  }
  await leave(0);
}

async function failureOf(one, blocks, entered) {
  let failure;
  const step = async (steps) => {
    try {
      await within(runSteps(steps));
    } catch (error) {
      failure ??= error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
  };
  strayed = undefined;
  if (entered.length === 0 && IN_PLAYED_TIME.includes(one.file)) {
    startTime();
    isPlayed = true;
  }
  for (const outer of blocks.slice(entered.length)) {
    entered.push(outer);
    await step(outer.hooks.beforeAll);
  }
  if (failure === undefined) {
    await step(blocks.flatMap(({ hooks }) => hooks.beforeEach));
  }
  if (failure === undefined) {
    await step([one.run]);
  }
  await step(blocks.toReversed().flatMap(({ hooks }) => hooks.afterEach.toReversed()));
  if (!IN_PLAYED_TIME.includes(one.file)) {
    clock.useRealTimers();
  }
  for (const spy of spies) {
    spy.mockRestore();
  }
  spies.clear();
  return failure ?? strayed;
}

async function runSteps(steps) {
  for (const step of steps) {
    await step();
  }
}

/** Whether the harness plays time, for a whole file. */
let isPlayed = false;

async function within(work) {
  let timer;
  let playedTimer;
  const tooLong = new Promise((_, reject) => {
    const end = () => reject(new Error('It did not end.'));
    timer = setTimeout(end, LONGEST_MS);
    playedTimer = isPlayed && globalThis.setTimeout(() => setTimeout(end, GRACE_MS), LONGEST_PLAYED_MS);
  });
  await Promise.race([work, tooLong]).finally(() => {
    clearTimeout(timer);
    globalThis.clearTimeout(playedTimer);
  });
}

/** An error that no test awaited is the failure of the test that runs. */
let strayed;
const stray = (error) => {
  strayed ??= `Nobody awaited: ${error instanceof Error ? error.stack : String(error)}`;
};
process.on('uncaughtException', stray);
process.on('unhandledRejection', stray);
