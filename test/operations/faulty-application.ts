import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Get, Header, Inject, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule, LockService, type LockStore } from 'nestjs-distributed-lock';
import { LockPageModule } from 'nestjs-distributed-lock/page';
import { prometheusTelemetry } from 'nestjs-distributed-lock/prometheus';
import { Registry } from 'prom-client';
import { conditionOf } from '../../console/page/app/model/condition';
import { troubleWords } from '../../console/page/app/model/trouble-words';
import type { Snapshot } from '../../console/page/snapshot';
import type { LockError } from '../../lib/core/words/errors';
import type { LockHealth } from '../../lib/core/words/lock-health';

@Controller()
class Metrics {
  readonly #register: Registry;

  constructor(@Inject(Registry) register: Registry) {
    this.#register = register;
  }

  @Get('metrics')
  @Header('content-type', Registry.PROMETHEUS_CONTENT_TYPE)
  metrics(): Promise<string> {
    return this.#register.metrics();
  }
}

/** The notice of the page about a store: its condition, and the words for each reason. */
export interface PageNotice {
  readonly condition: string;
  readonly said: Readonly<Record<string, string>>;
}

/** The warnings and errors in the log of all applications: Nest has one logger for a process. */
export const LINES: { readonly text: string; readonly at: number }[] = [];

/** An application with the page and with metrics, of which each store has a fault of its own. */
export class FaultyApplication {
  readonly #app: INestApplication;
  readonly #url: string;
  readonly #calls = new Map<string, Promise<void>>();
  /** The outcome of the last call of each store. */
  readonly #outcomes = new Map<string, string>();
  #isOver = false;

  private constructor(app: INestApplication, url: string) {
    this.#app = app;
    this.#url = url;
  }

  static async start(stores: Readonly<Record<string, LockStore>>): Promise<FaultyApplication> {
    const register = new Registry();
    @Module({
      imports: [
        LockModule.forRoot({ stores, telemetry: prometheusTelemetry({ register }) }),
        LockPageModule.forRoot({ access: 'anybody' }),
      ],
      controllers: [Metrics],
      providers: [{ provide: Registry, useValue: register }],
    })
    class AppModule {}
    const write = (line: string): void => void LINES.push({ text: line, at: performance.now() });
    const logger = { log: () => undefined, warn: write, error: write };
    const app = await NestFactory.create(AppModule, { logger, forceCloseConnections: true });
    await app.listen(0, '127.0.0.1');
    return new FaultyApplication(app, await app.getUrl());
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  health(store: string): Promise<LockHealth> {
    return this.#locks(store).operations.health();
  }

  /** Has calls go on in a store, one after the other, until it is closed. */
  callOn(store: string): void {
    this.#calls.set(store, this.#callAgain(store));
  }

  /** The outcome of the last call: `ok`, or the HTTP status. */
  outcome(store: string): string {
    return this.#outcomes.get(store) ?? 'none';
  }

  /** The notices of the page, by the model that makes them from the survey. */
  async page(store: string): Promise<PageNotice> {
    const [, survey] = (await (await fetch(`${this.#url}/locks/survey`)).json()) as [unknown, Snapshot];
    const snapshot = survey.stores.find((each) => each.store === store);
    if (!snapshot) {
      throw new Error(`The survey has no store ${store}.`);
    }
    const { condition, troubles } = conditionOf(snapshot, [], Date.now());
    return {
      condition,
      said: Object.fromEntries(troubles.map((trouble) => [trouble.reason, withoutNumbers(troubleWords(trouble, troubles)[0])])),
    };
  }

  /** The states of a store that are 0 in the text for Prometheus, without what they have in common. */
  async zeros(store: string): Promise<string[]> {
    const text = await (await fetch(`${this.#url}/metrics`)).text();
    const found = [...text.matchAll(/^distributed_lock_store_(up|hearing|member_voting)\{(.*)\} 0$/gm)];
    const own = found.filter(([, , labels]) => labels?.includes(`distributed_lock_store="${store}"`));
    return [...new Set(own.map(([, name]) => (name as string).replace('member_', '')))];
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#calls.values());
    await this.#app.close();
  }

  async #callAgain(store: string): Promise<void> {
    while (!this.#isOver) {
      const outcome = await this.#locks(store)
        .withLock('k', { wait: '1s' }, () => 'ok')
        .catch((error: LockError) => String(error.status));
      this.#outcomes.set(store, outcome);
      await sleep(500);
    }
  }

  #locks(store: string): LockService {
    return this.#app.get(LockService).siblings.get(store) as LockService;
  }
}

/** Without the servers that are missing, and what is explained after a colon. */
function withoutNumbers(words: string): string {
  return words.replace(/:.*|(?<=server) .*/, '');
}
