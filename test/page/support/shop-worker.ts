import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../../support/until';

interface Notice {
  readonly event: 'calls' | 'held' | 'ended';
  readonly at?: number;
  readonly reason?: string;
}

/** A process of a shop with one call that is locked: `test/fixtures/shop-worker.mjs`. */
export class ShopWorker {
  readonly child: ChildProcess;
  readonly #notices: Notice[] = [];

  constructor(url: string, work: 'transfer' | 'refund' | 'report', id: string) {
    this.child = fork('test/fixtures/shop-worker.mjs', [url, work, id], { execArgv: [] });
    this.child.on('message', (notice) => this.#notices.push(notice as Notice));
  }

  async until(event: Notice['event']): Promise<Notice> {
    const found = (): Notice | undefined => this.#notices.find((notice) => notice.event === event);
    await until(`the call of process ${this.child.pid} has said "${event}"`, () => found() !== undefined);
    return found() as Notice;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exit = once(this.child, 'exit');
      this.child.send('leave');
      await exit;
    }
  }
}
