import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TcpProxy } from '../support/tcp-proxy.js';
import type { WorkerMessage, WorkerOptions, WorkerTask } from './worker-options.js';
import { goOn, stopProcess } from '../support/stopping.js';

/** How long a worker may take to end its calls and close, in milliseconds. */
const CLOSING_MS = 15_000;
/** How long a task of a worker is waited for, in milliseconds: one that hangs shows when the workers end. */
const TASK_MS = 15_000;

type Unnamed = Omit<WorkerOptions, 'name' | 'isFirst'>;
/** A task without its number. */
type Task = WorkerTask extends infer Each ? (Each extends WorkerTask ? Omit<Each, 'id'> : never) : never;

interface Member {
  readonly options: Unnamed;
  readonly proxies: readonly TcpProxy[];
  generation: number;
  child: ChildProcess;
  starting: Promise<void>;
}

/** The worker processes of a run, by name, each with the proxies between it and the servers. */
export class Fleet {
  /** The problems with how workers ended. */
  readonly failures: string[] = [];
  readonly #members = new Map<string, Member>();
  /** All processes that were started and have not ended. */
  readonly #children = new Map<ChildProcess, string>();
  /** The function to call when the task of that number is done. */
  readonly #tasks = new Map<number, () => void>();
  readonly #folder: string;
  readonly #edits: string;
  #lastTask = 0;
  #stopping = false;

  /** The edits are the deliberate defects of a run, as `test/support/typescript-hooks.mjs` takes them. */
  constructor(folder: string, edits: string) {
    this.#folder = folder;
    this.#edits = edits;
  }

  async add(name: string, options: Unnamed, proxies: readonly TcpProxy[]): Promise<void> {
    const child = this.#fork(name, 1, options);
    const starting = started(child);
    this.#members.set(name, { options, proxies, generation: 1, child, starting });
    await starting;
  }

  proxiesOf(name: string): readonly TcpProxy[] {
    return this.#member(name).proxies;
  }

  pause(name: string): void {
    stopProcess(this.#member(name).child.pid as number);
  }

  resume(name: string): void {
    goOn(this.#member(name).child.pid as number);
  }

  send(name: string, message: WorkerMessage): void {
    const { child } = this.#member(name);
    if (child.connected) {
      child.send(message, () => undefined);
    }
  }

  /**
   * Resolves when a worker has done a task, or has ended: the effect of the task on the worker's clocks must not
   * overlap with the next fault.
   */
  async ask(name: string, task: Task): Promise<void> {
    const { child } = this.#member(name);
    const id = ++this.#lastTask;
    const over = new AbortController();
    const done = new Promise<void>((resolve) => this.#tasks.set(id, resolve));
    this.send(name, { ...task, id });
    await Promise.race([done, exited(child, over.signal), sleep(TASK_MS, undefined, { signal: over.signal })]);
    over.abort();
    this.#tasks.delete(id);
  }

  /** To whom is between 0 and 1; answers who it was. */
  sendToOne(chance: number, message: WorkerMessage): string {
    return this.sendToAnother('', chance, message);
  }

  /** Sends a message to a random worker, and not to the one that is named. */
  sendToAnother(one: string, chance: number, message: WorkerMessage): string {
    const names = [...this.#members.keys()].filter((name) => name !== one);
    const name = names[Math.floor(chance * names.length)] as string;
    this.send(name, message);
    return name;
  }

  async kill(name: string): Promise<void> {
    const { child } = this.#member(name);
    if (this.#children.has(child)) {
      child.kill('SIGKILL');
      await exited(child);
    }
  }

  async restart(name: string): Promise<void> {
    const member = this.#member(name);
    member.generation++;
    member.child = this.#fork(name, member.generation, member.options);
    member.starting = started(member.child);
    await member.starting;
  }

  /** Lets all end what they do; whoever does not end by itself has left something open. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(
      [...this.#members].map(async ([name, { child }]) => {
        if (!this.#children.has(child)) {
          return;
        }
        this.send(name, { type: 'stop' });
        const timer = setTimeout(() => {
          this.failures.push(`${name} did not end within ${CLOSING_MS} ms: a call, a timer or a connection is left open.`);
          child.kill('SIGKILL');
        }, CLOSING_MS);
        await exited(child);
        clearTimeout(timer);
      }),
    );
    for (const [child, name] of this.#children) {
      this.failures.push(`${name} was started beside another process of its worker, and ran on.`);
      child.kill('SIGKILL');
    }
    await Promise.all([...this.#members.values()].flatMap(({ proxies }) => proxies.map((proxy) => proxy.stop())));
  }

  #fork(name: string, generation: number, options: Unnamed): ChildProcess {
    const numbered = `${name}.${generation}`;
    const errors = openSync(join(this.#folder, `${numbered}.stderr`), 'a');
    const all: WorkerOptions = { ...options, name: numbered, isFirst: generation === 1, seed: options.seed + generation };
    const child = fork('test/torture/worker.ts', [JSON.stringify(all)], {
      execArgv: ['--import', './test/support/typescript.mjs', '--enable-source-maps', '--unhandled-rejections=strict'],
      env: { ...process.env, TYPESCRIPT_EDITS: this.#edits },
      stdio: ['ignore', 'ignore', errors, 'ipc'],
    });
    this.#children.set(child, numbered);
    child.on('message', (message: WorkerMessage) => this.#relay(message));
    child.on('exit', (code, signal) => {
      this.#children.delete(child);
      if (signal !== 'SIGKILL' && (code !== 0 || !this.#stopping)) {
        this.failures.push(`${numbered} ended with ${signal ?? `exit code ${code}`}: see ${join(this.#folder, `${numbered}.stderr`)}`);
      }
    });
    return child;
  }

  /** A ticket goes to another worker, and the word that it was used back to the one that gave it. */
  #relay(message: WorkerMessage): void {
    if (message.type === 'ticket') {
      const names = [...this.#members.keys()].filter((name) => name !== baseOf(message.from));
      this.send(names[message.id % names.length] as string, message);
    } else if (message.type === 'ticketDone') {
      this.send(baseOf(message.to), message);
    } else if (message.type === 'done') {
      this.#tasks.get(message.id)?.();
    }
  }

  #member(name: string): Member {
    const member = this.#members.get(name);
    if (!member) {
      throw new Error(`There is no worker '${name}'.`);
    }
    return member;
  }
}

/** The name of a worker, whose processes are numbered. */
export function baseOf(process: string): string {
  return process.split('.')[0] as string;
}

async function started(child: ChildProcess): Promise<void> {
  await Promise.race([once(child, 'message'), once(child, 'exit')]);
}

async function exited(child: ChildProcess, signal?: AbortSignal): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    await once(child, 'exit', { signal }).catch(() => undefined);
  }
}
