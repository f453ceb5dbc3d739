import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { checkOptions, type OptionNames } from '../../lib/core/words/check-options.js';
import { LockConfigurationError } from '../../lib/core/words/errors.js';
import { shown } from '../../lib/core/words/shown.js';

/**
 * Decides for one request whether its user may release locks by force. A string is the name of the user, for the log.
 * The request is the request object of Express or Fastify.
 */
export type LockPageActions = (request: never) => boolean | string | Promise<boolean | string>;

/** The options of `LockPageModule`. */
export interface LockPageOptions {
  /** Where the page is, below the global prefix. Default: `'locks'`. */
  readonly path?: string | undefined;
  /** The guards of the page and of all its data: classes or instances, as for `@UseGuards`. */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[] | undefined;
  /** Modules that export what the guards inject. */
  readonly imports?: ModuleMetadata['imports'];
  /** `'anybody'` instead of `guards`: everybody who can reach the application sees all keys. */
  readonly access?: 'anybody' | undefined;
  /** Whether the user of a request may release locks by force. Default: nobody may. */
  readonly actions?: LockPageActions | undefined;
  /** Whether the page shows a short hash instead of each key, and no descriptions. Default: `false`. */
  readonly hideKeys?: boolean | undefined;
  /**
   * Where a trace is shown, by http, https or a path, with `{trace}` in place of its id: each trace of the page is a
   * link to it then. Default: no links.
   */
  readonly traceUrl?: string | undefined;
}

/** The options, checked, with their defaults. */
export interface CheckedPageOptions {
  readonly path: string;
  readonly guards: readonly (Type<CanActivate> | CanActivate)[];
  readonly imports: NonNullable<ModuleMetadata['imports']>;
  readonly actions: LockPageActions | undefined;
  readonly hideKeys: boolean;
  readonly traceUrl: string | undefined;
}

const OPTIONS: OptionNames<LockPageOptions> = {
  path: true,
  guards: true,
  imports: true,
  access: true,
  actions: true,
  hideKeys: true,
  traceUrl: true,
};

/** Throws `LockConfigurationError` for options that are wrong, and where nothing guards the page. */
export function checkPageOptions(options: LockPageOptions = {}): CheckedPageOptions {
  checkOptions('LockPageModule', options, OPTIONS);
  const { path = 'locks', guards = [], imports = [], access, actions, hideKeys = false, traceUrl } = options;
  if (typeof path !== 'string') {
    throw new LockConfigurationError(`LockPageModule: path is ${shown(path)}. Pass a path such as 'ops/locks'.`);
  }
  if (access !== undefined && access !== 'anybody') {
    throw new LockConfigurationError(`LockPageModule: access is ${shown(access)}. Use 'anybody', or leave it out and pass guards.`);
  }
  if (!Array.isArray(guards) || (guards.length === 0) === (access === undefined)) {
    throw new LockConfigurationError(
      'LockPageModule: the page shows the keys of all locks, and needs either guards or access. ' +
        "Write LockPageModule.forRoot({ guards: [AdminGuard] }), or { access: 'anybody' } where the network keeps strangers out.",
    );
  }
  if (actions !== undefined && typeof actions !== 'function') {
    throw new LockConfigurationError(
      `LockPageModule: actions is ${shown(actions)}. Pass a function of the request, which returns whether its user may release locks.`,
    );
  }
  if (traceUrl !== undefined && !leadsToTraces(traceUrl)) {
    throw new LockConfigurationError(
      `LockPageModule: traceUrl is ${shown(traceUrl)}. ` +
        "Pass an http or https address or a path with {trace} in it, such as 'https://jaeger.example/trace/{trace}'.",
    );
  }
  return { path, guards: guards as CheckedPageOptions['guards'], imports, actions, hideKeys, traceUrl };
}

/** Whether a value is an address for traces: one of another scheme, such as `javascript:`, would run in the page. */
function leadsToTraces(url: unknown): boolean {
  return typeof url === 'string' && /^(?:https?:\/\/|\/)/i.test(url) && url.includes('{trace}') && URL.canParse(url, 'http://localhost');
}
