import type { PeerCall } from './survey.js';

/**
 * The form of a field of a message: a kind of value, one of several texts, a list, an object, or one of them that may
 * be left out. `or`: stands for a value that is missing. `most`: a longer list does not fit. Words of a closed set
 * are texts: a process of a later version may have others.
 */
export type Shape = keyof typeof KINDS | readonly string[] | ListOf | Optional | Fields;

interface ListOf {
  readonly list: Shape;
  readonly most?: number;
}

interface Optional {
  readonly maybe: Shape;
  readonly or?: unknown;
}

/** The fields of an object. It may have others, which newer versions send. */
export interface Fields {
  readonly [field: string]: Shape;
}

/** The longest text in a message: a key of 1,024 bytes, and the words around it. */
const LONGEST_TEXT = 2_000;
/** The longest time span, in milliseconds: a hundred years. With it, a date is one. */
const LONGEST_MS = 36_525 * 86_400_000;
/** The longest text that is a name: such texts are cut, since they may be of any length. */
const LONGEST_NAME = 200;

/** A name, as messages have it. */
export function brief(name: string): string {
  return name.slice(0, LONGEST_NAME);
}

type NamedCall = Omit<PeerCall, 'process'>;

/** The fields by which messages name a call. */
export function namesOf({ key, name, site, description }: NamedCall): NamedCall {
  return { key, name: brief(name), site: brief(site), description };
}

const isText = (value: unknown): boolean => typeof value === 'string' && value.length <= LONGEST_TEXT;
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isMs = (value: unknown, least: number): boolean => typeof value === 'number' && value >= least && value <= LONGEST_MS;

/** The kinds of values. `count`: a whole number from 0, such as a fence. `offset`: a time span that may be negative. */
const KINDS = {
  text: isText,
  count: isCount,
  textOrCount: (value: unknown) => isText(value) || isCount(value),
  ms: (value: unknown) => isMs(value, 0),
  offset: (value: unknown) => isMs(value, -LONGEST_MS),
  boolean: (value: unknown) => typeof value === 'boolean',
} as const;

/** An object that somebody sent. */
type Given = Readonly<Record<string, unknown>>;

/** Stands for a value that has not the right shape. */
const MISFIT = Symbol();

/**
 * A copy of a message that somebody sent, which has the fields of its shape alone, and defaults for those that are
 * missing. Undefined where the message has another shape.
 */
export function shaped(message: unknown, shape: Fields): unknown {
  const copy = copyOf(message, shape);
  return copy === MISFIT ? undefined : copy;
}

function copyOf(value: unknown, shape: Shape): unknown {
  if (typeof shape === 'string') {
    return KINDS[shape](value) ? value : MISFIT;
  }
  if (Array.isArray(shape)) {
    return shape.includes(value) ? value : MISFIT;
  }
  if (isOptional(shape)) {
    return value === undefined ? shape.or : copyOf(value, shape.maybe);
  }
  if (isListOf(shape)) {
    return Array.isArray(value) && value.length <= (shape.most ?? Infinity) ? copyOfList(value, shape.list) : MISFIT;
  }
  return typeof value === 'object' && value !== null ? copyOfFields(value as Given, shape as Fields) : MISFIT;
}

function copyOfList(values: readonly unknown[], shape: Shape): unknown {
  const copies = values.map((value) => copyOf(value, shape));
  return copies.includes(MISFIT) ? MISFIT : copies;
}

function copyOfFields(given: Given, shape: Fields): unknown {
  const copy: Record<string, unknown> = {};
  const fits = Object.entries(shape).every(([name, its]) => (copy[name] = copyOf(given[name], its)) !== MISFIT);
  return fits ? copy : MISFIT;
}

const isOptional = (shape: object): shape is Optional => 'maybe' in shape;
const isListOf = (shape: object): shape is ListOf => 'list' in shape;
