import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { freePort } from './redis-server';
import { until } from './until';

/** A real nats-server of the test's own. */
export class NatsServer {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number) {
    this.port = port;
    const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };
    this.#child = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(port)], { stdio: 'ignore', env });
    this.#child.on('error', () => undefined);
  }

  static async start(): Promise<NatsServer> {
    const server = new NatsServer(await freePort());
    await until('that nats-server listens', () => server.#listens());
    return server;
  }

  async #listens(): Promise<boolean> {
    const socket = connect(this.port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.pid !== undefined) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
  }
}
