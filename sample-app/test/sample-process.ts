import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../../test/support/until';

/** Embedded defaults on a free port, whatever the tests' own environment says. */
const DEFAULTS = { PORT: '0', LOCK_STORE: '', REDIS_URL: '', REDIS_URLS: '', DATABASE_URL: '', OTEL: '' };

/** The program that `npm start` builds and starts, here from its sources, with the library as it was built. */
export class SampleProcess {
  readonly #child;
  /** Resolves to the exit code when it has ended and all is read that it printed. */
  readonly exitCode: Promise<number | null>;
  /** The printed text, errors included. */
  output = '';

  constructor(environment: NodeJS.ProcessEnv) {
    this.#child = spawn(process.execPath, ['--import', './test/support/typescript.mjs', 'sample-app/src/main.ts'], {
      env: { ...process.env, ...DEFAULTS, LIBRARY: 'built', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.exitCode = once(this.#child, 'close').then(([code]) => code as number | null);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when it takes requests. */
  async url(): Promise<string> {
    const listening = /listens on (http:\S+)\.$/m;
    await until('the start of the sample application', () => listening.test(this.output), 150_000);
    return listening.exec(this.output)?.[1] as string;
  }

  async stop(): Promise<void> {
    this.#child.kill();
    await this.exitCode;
  }
}
