import { Inject, Injectable, ServiceUnavailableException, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import { finalize, map, merge, Observable, ReplaySubject, shareReplay, takeUntil, timer } from 'rxjs';
import { VERSION } from '../../lib/core/words/version.js';
import type { LockOperations } from '../../lib/nest/lock.operations.js';
import { LockService } from '../../lib/nest/lock.service.js';
import { LOCK_SERVICE_TOKEN } from '../../lib/nest/methods/locked-instance.js';
import { ApplicationStores } from './application-stores.js';
import { redirectSlash } from './fastify-slash.js';
import { LiveSurvey } from './live-survey.js';
import type { CheckedPageOptions } from './lock-page.options.js';
import { searchOrphans } from './orphan-search.js';
import { PAGE_OPTIONS } from './page-options.token.js';
import type { PageRequest } from './page-request.js';
import { showHash, showWhole } from './shown-key.js';
import type { PageInfo, ReleaseAnswer, ReleaseRequest, Snapshot, StoredLockInfo } from './snapshot.js';

/** For how long a stream lasts, in milliseconds: the browser opens the next one, and the guards see it. */
const STREAM_MS = 5 * 60_000;

/** How much of the name of a user is told, in characters. */
const MOST_NAME = 150;

/** Serves the page its data. */
@Injectable()
export class LockPage implements OnModuleInit, OnModuleDestroy {
  readonly #stores: ApplicationStores;
  readonly #live: LiveSurvey;
  readonly #options: CheckedPageOptions;
  /** The searches that run, by store. */
  readonly #searches = new Map<string, Observable<string>>();
  readonly #closing = new ReplaySubject<void>(1);
  #isClosing = false;

  readonly #adapterHost: HttpAdapterHost;
  readonly #config: ApplicationConfig;

  constructor(
    @Inject(LOCK_SERVICE_TOKEN) service: LockService,
    @Inject(PAGE_OPTIONS) options: CheckedPageOptions,
    @Inject(HttpAdapterHost) adapterHost: HttpAdapterHost,
    @Inject(ApplicationConfig) config: ApplicationConfig,
  ) {
    this.#adapterHost = adapterHost;
    this.#config = config;
    this.#stores = new ApplicationStores(service, options.hideKeys ? showHash : showWhole);
    this.#live = new LiveSurvey((incidentsMs) => this.#stores.survey(incidentsMs));
    this.#options = options;
  }

  onModuleInit(): void {
    this.#stores.record();
    redirectSlash(this.#adapterHost, this.#config, this.#options.path);
  }

  /** Streams end, so that the server can close. */
  onModuleDestroy(): void {
    this.#isClosing = true;
    this.#closing.next();
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** The surveys, as texts; first what this user may do. */
  async events(request: PageRequest): Promise<Observable<string>> {
    const info = JSON.stringify(await this.#info(request));
    return this.#bounded(
      new Observable((viewer) => {
        viewer.next(info);
        return this.#live.watch((message) => viewer.next(message));
      }),
    );
  }

  async survey(request: PageRequest): Promise<readonly [PageInfo, Snapshot]> {
    return [await this.#info(request), await this.#live.once()];
  }

  /**
   * The results of a search, as texts; undefined where there is no such store. All who search a store at the same time
   * share one search.
   */
  search(store: string): Observable<string> | undefined {
    const operations = this.#stores.operationsOf(store);
    return operations && this.#bounded(this.#searches.get(store) ?? this.#newSearch(store, operations));
  }

  /** Who comes later is told first what was found so far; it ends where nobody listens any more. */
  #newSearch(store: string, operations: LockOperations): Observable<string> {
    const search = searchOrphans(operations, this.#stores.show).pipe(
      map((step) => JSON.stringify(step)),
      finalize(() => this.#searches.delete(store)),
      shareReplay({ bufferSize: Infinity, refCount: true }),
    );
    this.#searches.set(store, search);
    return search;
  }

  /**
   * The store's facts of a lock; undefined where there is no such store, or keys are hidden. Throws `LockStoreError`
   * and `LockKeyError`.
   */
  async inspect(store: string, key: string): Promise<StoredLockInfo | null | undefined> {
    return this.#options.hideKeys ? undefined : this.#stores.inspect(store, key);
  }

  /** The name of the user of a request, or true, where the user may release locks; false where not. */
  async mayAct(request: PageRequest): Promise<boolean | string> {
    // An empty name is nobody's.
    return (await this.#options.actions?.(request as never)) || false;
  }

  /** Undefined where the page shows no such lock. Throws `LockStoreError`. */
  release(request: ReleaseRequest, user: string | true): Promise<ReleaseAnswer | undefined> {
    return this.#stores.release(request, user === true ? 'the page' : `${user.slice(0, MOST_NAME)} (page)`);
  }

  async #info(request: PageRequest): Promise<PageInfo> {
    const actions = (await this.mayAct(request)) !== false;
    const { hideKeys, traceUrl } = this.#options;
    return { kind: 'page', actions, hideKeys, traceUrl, version: VERSION };
  }

  /** A stream that ended at once would be opened again and again. */
  #bounded(messages: Observable<string>): Observable<string> {
    if (this.#isClosing) {
      throw new ServiceUnavailableException('The application is closing.');
    }
    return messages.pipe(takeUntil(merge(this.#closing, timer(STREAM_MS))));
  }
}
