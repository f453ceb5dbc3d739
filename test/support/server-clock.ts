import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RedisServer } from './redis-server.js';

/**
 * The wall clock of a redis-server, which can be set while the server runs. Its monotonic clock runs on, as on a real
 * machine.
 */
export class ServerClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'server-clock-'));
  readonly #numbers = join(this.#folder, 'numbers');
  readonly #shim = join(this.#folder, 'clock-shim.so');

  constructor() {
    this.set(0);
    const { status, error, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', this.#shim, 'test/support/clock-shim.c']);
    if (status !== 0) {
      this.remove();
      throw new Error(
        `The clock of the tests' server could not be built: ${error?.message ?? String(stderr)}. ` +
          'It takes Linux and a C compiler: apt-get install gcc libc6-dev, or node scripts/find-servers.mjs as root.',
      );
    }
  }

  /** A server that reads this clock. */
  async startServer(...args: string[]): Promise<RedisServer> {
    const server = await RedisServer.startWith({ LD_PRELOAD: this.#shim, CLOCK_SHIM: this.#numbers }, ...args);
    const [before = 0] = await server.client.time();
    this.set(3_600_000);
    const [after = 0] = await server.client.time();
    this.set(0);
    if (after - before < 3_000) {
      await server.stop();
      throw new Error('The redis-server does not read the clock of the tests. Make sure that it is not linked statically.');
    }
    return server;
  }

  /** By how many milliseconds it is ahead of the machine's; negative where it was set back. */
  set(aheadMs: number): void {
    this.#write(aheadMs * 1_000, 0);
  }

  /** Stops it at a time, in microseconds since 1970. */
  stopAt(us: number): void {
    this.#write(0, us);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #write(aheadUs: number, stoppedAtUs: number): void {
    const numbers = Buffer.alloc(16);
    numbers.writeBigInt64LE(BigInt(aheadUs), 0);
    numbers.writeBigInt64LE(BigInt(stoppedAtUs), 8);
    // In place, and not truncated before: the server has mapped the file.
    const file = openSync(this.#numbers, constants.O_RDWR | constants.O_CREAT);
    writeSync(file, numbers, 0, numbers.length, 0);
    closeSync(file);
  }
}
