import { fork, type ChildProcess } from 'node:child_process';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** A message of the application about its work. */
export interface Notice {
  readonly event: 'listening' | 'came' | 'held' | 'ran' | 'notified' | 'ended' | 'rejected' | 'answered' | 'closed';
  readonly key?: string;
  readonly code?: string;
  readonly reason?: string;
  readonly port?: number;
  readonly tookMs?: number;
}

/** An HTTP application in a process of its own: `test/fixtures/application.mjs`. */
export class Application {
  readonly child: ChildProcess;
  readonly notices: Notice[] = [];
  output = '';
  readonly #closed: Promise<void>;
  #port = 0;

  private constructor(url: string, hooks: boolean) {
    this.child = fork('test/fixtures/application.mjs', [url, hooks ? 'hooks' : ''], {
      execArgv: ['--unhandled-rejections=strict'],
      silent: true,
    });
    this.child.on('message', (notice) => this.notices.push(notice as Notice));
    this.#closed = new Promise((resolve) => this.child.once('close', () => resolve()));
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (data) => (this.output += String(data)));
    }
  }

  static async start(url: string, { hooks }: { hooks: boolean }): Promise<Application> {
    const application = new Application(url, hooks);
    application.#port = (await application.until('listening')).port as number;
    return application;
  }

  /** Starts work besides requests. */
  begin(task: 'hold' | 'run' | 'close', key = '', options: object = {}): void {
    this.child.send({ task, key, options });
  }

  /** The first time that it said so. */
  async until(event: Notice['event'], key?: string): Promise<Notice> {
    for (;;) {
      const found = this.notices.find((one) => one.event === event && (key === undefined || one.key === key));
      if (found) {
        return found;
      }
      // The last message may arrive after its end.
      if (!this.child.connected && (this.child.exitCode !== null || this.child.signalCode !== null)) {
        throw new Error(`the application ended before it said '${event}': ${this.output}`);
      }
      await sleep(5);
    }
  }

  /** Where in the order of all that was said; -1 for what never was. */
  positionOf(event: Notice['event'], key?: string): number {
    return this.notices.findLastIndex((one) => one.event === event && (key === undefined || one.key === key));
  }

  /** A request on a connection of its own; the status, or the code of the error of the connection. */
  async request(key: string, ms: number): Promise<number | string> {
    return new Promise((resolve) => {
      get({ port: this.#port, host: '127.0.0.1', path: `/${key}/${ms}`, agent: false }, (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
      }).on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  }

  /** Its exit code, or the signal that ended it, once all that it said has arrived: that may be after its end. */
  async end(): Promise<number | NodeJS.Signals | null> {
    await this.#closed;
    return this.child.exitCode ?? this.child.signalCode;
  }
}
