import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** How jest-worker marks the messages of a suite for reporters. */
const EVENT = 3;

/** A suite runs most of its code a few times only. By default, a quarter of what it takes to load goes into optimizing the loader. */
const V8 = ['--interrupt-budget=1000000'];

/** Those that run; who stops the run stops them all. */
const running = new Set();
process.on('exit', () => running.forEach((suite) => suite.kill()));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => process.exit(130));
}

/**
 * The process in which a suite runs. It leads a process group, and what the suite starts belongs to the group; temporary files go to a folder of
 * its own. Both are gone when `run` settles.
 */
export class SuiteProcess {
  #folder = mkdtempSync(join(tmpdir(), 'suite-'));
  #onEvent;
  #limitMs;
  /** @type {import('node:child_process').ChildProcess} */
  #child;
  #output = [];
  #current = new Set();

  constructor({ slot, stdio, limitMs, onEvent }) {
    // Servers run as another user.
    chmodSync(this.#folder, 0o755);
    this.#limitMs = limitMs;
    this.#onEvent = onEvent;
    const { FORCE_COLOR = process.stdout.isTTY ? '1' : '0' } = process.env;
    this.#child = fork(new URL('suite-child.mjs', import.meta.url), [], {
      detached: true,
      execArgv: [...process.execArgv, ...V8, '--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', stdio, stdio, 'ipc'],
      env: { ...process.env, JEST_WORKER_ID: String(slot), FORCE_COLOR, TMPDIR: this.#folder },
    });
    this.#child.stdout?.on('data', (text) => this.#output.push(text));
    this.#child.stderr?.on('data', (text) => this.#output.push(text));
    running.add(this);
  }

  /** The result of the suite, and the tests of it that were stopped. Rejects where the suite crashes or hangs. */
  async run(task) {
    const path = relative(process.cwd(), task.suite.path);
    const closed = once(this.#child, 'close');
    try {
      return await new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(this.#hanging(path))), this.#limitMs);
        const end = (settle, value) => {
          clearTimeout(timer);
          settle(value);
        };
        this.#child.on('message', (message) => {
          if (Array.isArray(message) && message[0] === EVENT) {
            this.#note(...message[1]);
          } else if (message.error) {
            end(reject, message.error);
          } else {
            end(resolve, message);
          }
        });
        this.#child.once('error', (error) => end(reject, error));
        this.#child.once('exit', (code, signal) =>
          end(reject, new Error(`The process of ${path} ended before its suite: ${signal ?? `code ${code}`}.`)),
        );
        this.#child.send(task);
      });
    } finally {
      this.kill();
      await closed;
      running.delete(this);
      process.stdout.write(Buffer.concat(this.#output));
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }

  /** Ends the suite and all that it has started. */
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

  #hanging(path) {
    const where = this.#current.size > 0 ? `in ${[...this.#current].join(', ')}` : 'outside of its tests';
    return `${path} did not end within ${this.#limitMs / 1_000} s. It hangs ${where}. Its process and all that it had started were killed.`;
  }
}
