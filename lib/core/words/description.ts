import { shown } from './shown.js';

/** Describes the purpose of a call, in short texts by name: a request, a tenant, a trace. */
export type Description = Readonly<Record<string, string | number | boolean | undefined>>;

/** Describes the running call. */
export type Describe = () => Description | undefined;

/** How long the text of a description may be, in characters: the store keeps it with each lock. */
const LONGEST = 200;
const PLAIN = /^[\w.:/@+-]+$/;
/** A trace and a span of OpenTelemetry, as `trace=… span=…`. */
const TRACE = /(?:^|\s|\()trace=([0-9a-f]{32})(?: span=([0-9a-f]{16}))?(?=[\s)]|$)/;

/**
 * The text of several descriptions, such as `request=8f3 tenant=acme`; empty for none. If a description throws, the
 * text has its error.
 */
export function descriptionText(describes: readonly Describe[]): string {
  const text = describes
    .flatMap((describe) => partsOf(describe))
    .map(([name, value]) => `${name}=${PLAIN.test(value) ? value : JSON.stringify(value)}`)
    .join(' ');
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/** The text for a call: its place in the code, and its description. */
export function calledAs({ site, description }: { readonly site: string; readonly description?: string | undefined }): string {
  return description === undefined ? site : `${site} (${description})`;
}

/** The trace that a text names, and its span; undefined where it names none. */
export function traceIn(text: string): { readonly traceId: string; readonly spanId: string | undefined } | undefined {
  const [, traceId, spanId] = TRACE.exec(text) ?? [];
  return traceId === undefined ? undefined : { traceId, spanId };
}

function partsOf(describe: Describe): (readonly [name: string, value: string])[] {
  let description: unknown;
  try {
    description = describe();
  } catch (error) {
    return [['describe', `threw ${error instanceof Error ? error.name : shown(error)}`]];
  }
  if (description === undefined || description === null) {
    return [];
  }
  if (typeof description !== 'object' || typeof (description as Partial<PromiseLike<unknown>>).then === 'function') {
    return [['describe', `answered ${shown(description)}`]];
  }
  return Object.entries(description)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => [name, typeof value === 'object' || typeof value === 'function' ? shown(value) : String(value)]);
}
