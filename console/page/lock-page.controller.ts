import {
  BadRequestException,
  Controller,
  ForbiddenException,
  Get,
  HttpCode,
  Inject,
  Injectable,
  NotFoundException,
  Post,
  Query,
  Req,
  Res,
  ServiceUnavailableException,
  Sse,
  UseGuards,
  VERSION_NEUTRAL,
  type CanActivate,
  type ExecutionContext,
  type MessageEvent,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { map, type Observable } from 'rxjs';
import { isLockError } from '../../lib/core/words/errors.js';
import { LockPage } from './lock-page.js';
import type { CheckedPageOptions } from './lock-page.options.js';
import { pageFile, type PageFile } from './page-file.js';
import { CONTENT_SECURITY_POLICY, pageHtml } from './page-html.js';
import { refuseForgery, refuseOtherSites, type PageRequest } from './page-request.js';
import { parseRelease } from './release-request.js';
import type { ReleaseAnswer } from './snapshot.js';

/** How soon a browser opens the stream again that has ended, in milliseconds. */
const RETRY_MS = 1_000;

const APP_JS = pageFile('app.js');
const APP_CSS = pageFile('app.css');
const ICON = pageFile('icon.svg');

/** Lets everybody in. A page that asks on over a connection that is kept would keep the server from closing. */
@Injectable()
class EndingConnections implements CanActivate {
  constructor(
    @Inject(LockPage) private readonly lockPage: LockPage,
    @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    if (this.lockPage.isClosing) {
      this.adapterHost.httpAdapter.setHeader(context.switchToHttp().getResponse(), 'Connection', 'close');
    }
    return true;
  }
}

/**
 * The controller of the page: a class for each call, since its path and its guards are options. Being a controller, and
 * no router that is mounted beside Nest, it has the guards, the global prefix and the interceptors of the application.
 * Answers are sent by the adapter of Express or Fastify, so that no interceptor puts an envelope around a page.
 */
export function lockPageController({ path, guards }: CheckedPageOptions): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(EndingConnections, ...guards)
  class LockPageController {
    constructor(
      @Inject(LockPage) private readonly lockPage: LockPage,
      @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
    ) {}

    @Get()
    page(@Req() request: PageRequest, @Res() response: unknown): void {
      this.#send(response, 200, pageHtml(request.originalUrl ?? request.url), {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': CONTENT_SECURITY_POLICY,
        'Cache-Control': 'no-store',
      });
    }

    @Get('app.js')
    script(@Req() request: PageRequest, @Res() response: unknown): void {
      this.#sendFile(request, response, APP_JS);
    }

    @Get('app.css')
    style(@Req() request: PageRequest, @Res() response: unknown): void {
      this.#sendFile(request, response, APP_CSS);
    }

    @Get('icon.svg')
    icon(@Req() request: PageRequest, @Res() response: unknown): void {
      this.#sendFile(request, response, ICON);
    }

    @Sse('events')
    async events(@Req() request: PageRequest): Promise<Observable<MessageEvent>> {
      refuseOtherSites(request);
      return (await this.lockPage.events(request)).pipe(map((data) => ({ data, retry: RETRY_MS })));
    }

    @Get('survey')
    async survey(@Req() request: PageRequest, @Res() response: unknown): Promise<void> {
      refuseOtherSites(request);
      this.#sendJson(response, await this.lockPage.survey(request));
    }

    @Get('lock')
    async lock(
      @Req() request: PageRequest,
      @Res() response: unknown,
      @Query('store') store: unknown,
      @Query('key') key: unknown,
    ): Promise<void> {
      refuseOtherSites(request);
      const lock = await asked(this.lockPage.inspect(String(store), String(key)));
      if (lock === undefined) {
        throw new NotFoundException('There is no such store, or its keys are hidden.');
      }
      this.#sendJson(response, { lock });
    }

    @Sse('search')
    search(@Req() request: PageRequest, @Query('store') store: unknown): Observable<MessageEvent> {
      refuseOtherSites(request);
      const steps = this.lockPage.search(String(store));
      if (!steps) {
        throw new NotFoundException('There is no such store.');
      }
      return steps.pipe(map((data) => ({ data })));
    }

    @Post('release')
    @HttpCode(200)
    async release(@Req() request: PageRequest, @Res() response: unknown): Promise<void> {
      refuseForgery(request);
      const user = await this.lockPage.mayAct(request);
      if (user === false) {
        throw new ForbiddenException('This user may not release locks.');
      }
      const answer = await this.#release(request, user);
      if (!answer) {
        throw new NotFoundException('There is no such lock.');
      }
      this.#sendJson(response, answer);
    }

    #release({ body }: PageRequest, user: string | true): Promise<ReleaseAnswer | undefined> {
      return asked(this.lockPage.release(parseRelease(body), user));
    }

    #sendFile({ headers }: PageRequest, response: unknown, { type, text, etag }: PageFile): void {
      const isKnown = headers['if-none-match'] === etag;
      const own = { 'Content-Type': type, 'Cache-Control': 'private, no-cache', ETag: etag };
      this.#send(response, isKnown ? 304 : 200, isKnown ? '' : text, own);
    }

    #sendJson(response: unknown, body: object): void {
      const own = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' };
      this.#send(response, 200, JSON.stringify(body), own);
    }

    #send(response: unknown, status: number, text: string, headers: Readonly<Record<string, string>>): void {
      const { httpAdapter } = this.adapterHost;
      const all = { ...headers, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' };
      for (const [name, value] of Object.entries(all)) {
        httpAdapter.setHeader(response, name, value);
      }
      httpAdapter.reply(response, text, status);
    }
  }
  return LockPageController;
}

/** The store's answer to a request; throws the error that the client of the page gets instead. */
async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!isLockError(error)) {
      throw error;
    }
    throw error.code === 'LOCK_KEY'
      ? new BadRequestException(error.detail)
      : new ServiceUnavailableException(`The store did not answer (${error.code}).`);
  }
}
