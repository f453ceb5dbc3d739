import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** How jest-worker marks the messages of a suite for reporters. */
const EVENT = 3;

/**
 * A suite runs most of its code a few times only. By default, a quarter of the time to load it goes into optimizing the
 * loader.
 */
const V8 = ['--interrupt-budget=1000000'];

/** Those that run; who stops the run stops them all. */
const running = new Set();
process.on('exit', () => running.forEach((suite) => suite.kill()));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => process.exit(130));
}

/**
 * A process in which suites run, one after the other, as long as none leaves anything behind. It leads a process group,
 * and the processes that a suite starts belong to the group; temporary files go to a folder of its own. Both are gone
 * when `end` resolves.
 */
export class SuiteProcess {
  #folder = mkdtempSync(join(tmpdir(), 'suite-'));
  #onEvent;
  #limitMs;
  /** @type {import('node:child_process').ChildProcess} */
  #child;
  #output = [];
  #current = new Set();
  #path = '';
  #answered;
  #closed;
  /** Whether another suite may run in it. */
  mayGoOn = false;
  /** Further variables of its environment. */
  env;

  constructor({ slot, stdio, env, limitMs, onEvent }) {
    this.env = env;
    // Servers run as another user.
    chmodSync(this.#folder, 0o755);
    this.#limitMs = limitMs;
    this.#onEvent = onEvent;
    const { FORCE_COLOR = process.stdout.isTTY ? '1' : '0' } = process.env;
    this.#child = fork(new URL('suite-child.mjs', import.meta.url), [], {
      detached: true,
      execArgv: [...process.execArgv, ...V8, '--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', stdio, stdio, 'ipc'],
      env: { ...process.env, JEST_WORKER_ID: String(slot), FORCE_COLOR, TMPDIR: this.#folder, ...env },
    });
    this.#child.stdout?.on('data', (text) => this.#output.push(text));
    this.#child.stderr?.on('data', (text) => this.#output.push(text));
    this.#child.on('message', (message) =>
      Array.isArray(message) && message[0] === EVENT ? this.#note(...message[1]) : this.#answered?.(message),
    );
    this.#child.once('error', (error) => this.#answered?.({ error }));
    this.#child.once('exit', (code, signal) => {
      this.mayGoOn = false;
      this.#answered?.({ error: new Error(`The process of ${this.#path} ended before its suite: ${signal ?? `code ${code}`}.`) });
    });
    this.#closed = once(this.#child, 'close');
    running.add(this);
  }

  /**
   * The result of a suite, and its tests that were stopped. Rejects where the suite crashes or hangs, and where an
   * error was thrown outside of tests that have all passed: the remains of a failed test must not hide its failure.
   */
  async run(task) {
    this.#path = relative(process.cwd(), task.suite.path);
    this.#current.clear();
    let timer;
    const answer = await new Promise((resolve) => {
      this.#answered = resolve;
      timer = setTimeout(() => resolve({ error: new Error(this.#hanging()) }), this.#limitMs);
      this.#child.send(task);
    });
    clearTimeout(timer);
    this.mayGoOn = answer.mayGoOn === true;
    const { result, stray, error } = answer;
    await (this.mayGoOn ? this.#tidy() : this.end(error || stray ? process.stderr : process.stdout));
    if (error) {
      throw error;
    }
    if (stray && !result.numFailingTests) {
      throw new Error(`Outside of the tests of ${this.#path} was thrown: ${stray}`);
    }
    return answer;
  }

  /** Ends the process and all that its suites have started. What they said goes to `output`. */
  async end(output = process.stdout) {
    if (!running.has(this)) {
      return;
    }
    this.kill();
    await this.#closed;
    running.delete(this);
    this.#tidy(output);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Says what the suite said, and removes its files. */
  #tidy(output = process.stdout) {
    output.write(Buffer.concat(this.#output.splice(0)));
    readdirSync(this.#folder).forEach((name) => rmSync(join(this.#folder, name), { recursive: true, force: true }));
  }

  kill() {
    try {
      process.kill(-Number(this.#child.pid), 'SIGKILL');
    } catch {
      // None of them is left.
    }
  }

  #note(event, args) {
    const [, { fullName, title, ancestorTitles = [] }] = args;
    const name = fullName ?? [...ancestorTitles, title].join(' ');
    if (event === 'test-case-start') {
      this.#current.add(name);
    } else if (event === 'test-case-result') {
      this.#current.delete(name);
    }
    this.#onEvent(event, args);
  }

  #hanging() {
    const where = this.#current.size > 0 ? `in ${[...this.#current].join(', ')}` : 'outside of its tests';
    return `${this.#path} did not end within ${this.#limitMs / 1_000} s. It hangs ${where}. Its process and all that it had started were killed.`;
  }
}
