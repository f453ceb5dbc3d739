import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort } from './redis-server';
import { until } from './until';

/** The name of a metric, with labels. */
export interface Series {
  readonly __name__: string;
  readonly [label: string]: string;
}

/** The result of a query for some labels. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
}

/** The state of an alert rule. */
export interface AlertRule {
  readonly name: string;
  readonly state: 'inactive' | 'pending' | 'firing';
  readonly health: 'ok' | 'unknown' | 'err';
  readonly lastError?: string;
}

/**
 * A real Prometheus of the test's own, which scrapes and evaluates its rules every second, unless another time is
 * given.
 */
export class PrometheusServer {
  readonly #port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), 'lock-prometheus-'));
  #child: ChildProcess | undefined;
  #output = '';

  private constructor(port: number) {
    this.#port = port;
  }

  /** It scrapes the application at that port. */
  static async start(scraped: number, rules: string, every = '1s'): Promise<PrometheusServer> {
    const server = new PrometheusServer(await freePort());
    await server.#start(scraped, rules, every);
    return server;
  }

  /** The series that a query selects or makes. */
  async query(expression: string): Promise<readonly Sample[]> {
    return (await this.#get<{ result: readonly Sample[] }>('query', { query: expression })).result;
  }

  /** Each series that is stored, also those that have ended. */
  series(selector: string): Promise<readonly Series[]> {
    return this.#get('series', { 'match[]': selector });
  }

  async alertRules(): Promise<readonly AlertRule[]> {
    const { groups } = await this.#get<{ groups: readonly { rules: readonly AlertRule[] }[] }>('rules', { type: 'alert' });
    return groups.flatMap(({ rules }) => rules);
  }

  async stop(): Promise<void> {
    const child = this.#child as ChildProcess;
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #start(scraped: number, rules: string, every: string): Promise<void> {
    const config = {
      global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: '1s' },
      rule_files: [resolve(rules)],
      scrape_configs: [{ job_name: 'application', static_configs: [{ targets: [`127.0.0.1:${scraped}`] }] }],
    };
    const file = join(this.#folder, 'prometheus.yml');
    // YAML is a superset of JSON.
    writeFileSync(file, JSON.stringify(config));
    const args = [`--config.file=${file}`, `--storage.tsdb.path=${this.#folder}/data`, `--web.listen-address=127.0.0.1:${this.#port}`];
    const child = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    child.stderr.on('data', (text) => (this.#output += String(text)));
    const failed = once(child, 'exit').then(() => {
      throw new Error(`prometheus ended before it was ready: ${this.#output}`);
    });
    await Promise.race([until('that Prometheus is ready', () => this.#isReady()), failed]);
  }

  async #isReady(): Promise<boolean> {
    return fetch(`http://127.0.0.1:${this.#port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  async #get<T>(path: string, parameters: Readonly<Record<string, string>>): Promise<T> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`);
    const { status, data, error } = (await response.json()) as { status: string; data: T; error?: string };
    if (status !== 'success') {
      throw new Error(`Prometheus refused ${path} of ${Object.values(parameters).join()}: ${error}`);
    }
    return data;
  }
}
