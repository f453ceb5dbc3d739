import { LockConfigurationError, LockError, LockStoreError } from '../../core/words/errors.js';
import { fenceTooHigh, messageOf } from '../../kit/refusals.js';
import { CredentialsError } from './credentials.js';
import { tlsFailure } from './tls-errors.js';
import type { Script } from '../scripts/script.js';

/** The refusal of a command that a server does not have, or has under another name: of itself, and inside a script. */
const UNKNOWN_COMMAND = /unknown (redis )?command/i;

/** Error replies that stay the same however often the command is repeated. */
const HOPELESS =
  /\b(WRONGPASS|NOAUTH|NOPERM|WRONGTYPE|NOPROTO|CROSSSLOT)\b|ACL failure in script|can't run this command|invalid password|without any password/;

/** The errors that are about one key: something else wrote it, or it shares no slot with the other keys of its lock. */
const OF_A_KEY = /\b(WRONGTYPE|CROSSSLOT)\b/;

/** The failure of a command that was not sent: there is no connection, and commands do not wait for one. */
export const NO_CONNECTION = 'there is no connection';

/** The errors of commands that were not sent, also in ioredis' words. */
const NOT_SENT = new RegExp(`enableOfflineQueue|^${NO_CONNECTION}`);

/** The errors of an ioredis cluster that cannot reach the node that serves a slot, or knows of none. */
const UNREACHABLE = new RegExp(`Connection is closed|MOVED|${NOT_SENT.source}`);

/** The texts in which clients speak about themselves, and the failure in plain words. */
const PLAIN_WORDS: readonly (readonly [RegExp, string])[] = [
  [/max retries per request|^Socket closed unexpectedly|^Disconnects client/, 'the connection was lost'],
  [/enableOfflineQueue/, NO_CONNECTION],
  [/Connection is closed/, 'the connection was closed'],
];

/**
 * The error of a failed command. An error reply is a known failure. After a timeout or a closed connection it is
 * unknown whether the command was carried out. It is also unknown after an error reply where the client `sendsAgain` by
 * itself: it may be the reply to the second sending. `connectionError` is the last error of the connection itself.
 */
export function toLockError(
  error: unknown,
  key: string,
  connectionError: Error | undefined,
  script?: Script,
  sendsAgain = false,
): LockError {
  const failure = error instanceof Error ? error : new Error(String(error));
  const isReply = failure.name === 'ReplyError';
  const cause = withoutCommand(isReply ? failure : ofNode(connectionError ?? failure));
  // The connection was refused, or broke after the reply that says why.
  const isRefused = cause.name === 'ReplyError';
  const subject = key === '' ? '' : `Lock "${key}": `;
  const said = plainWords(messageOf(cause));
  const counter = /\bFENCE (\d+)/.exec(cause.message)?.[1];
  if (isReply && counter) {
    return fenceTooHigh(key, counter, 'delete the keys <prefix>:fence:*');
  }
  const hopeless = tlsFailure(cause, said) ?? hopelessFailure(cause, said, script);
  if (hopeless !== undefined) {
    return new LockConfigurationError(`${subject}${hopeless}`, key, { cause, ofStore: !OF_A_KEY.test(cause.message) });
  }
  return new LockStoreError(`${subject}${passingFailure(cause, said, isRefused)}`, key, {
    cause,
    unknown: isReply ? sendsAgain : !NOT_SENT.test(failure.message),
  });
}

/**
 * Answers of a node of a Cluster to a client for one server: the slot is another node's or nobody's, or there are two.
 */
const OF_A_CLUSTER = /\b(CROSSSLOT|MOVED|CLUSTERDOWN)\b|^ASK /;

/** The error of a command that a node of a Cluster refused to a client for one server; undefined for other failures. */
export function clusterNodeError(error: unknown, key: string): LockError | undefined {
  if (!(error instanceof Error) || error.name !== 'ReplyError' || !OF_A_CLUSTER.test(error.message)) {
    return undefined;
  }
  return new LockConfigurationError(
    'The server is a node of a Redis Cluster. Give RedisLockStore a Cluster client: new Cluster() of ioredis, or createCluster() of node-redis. ' +
      'A quorum takes servers outside of a Cluster.',
    key,
    { cause: withoutCommand(error), ofStore: true },
  );
}

/** The words for failures that no retry mends, with the next step; undefined for other failures. */
function hopelessFailure(cause: Error, said: string, script: Script | undefined): string | undefined {
  return HOPELESS.test(cause.message) || UNKNOWN_COMMAND.test(cause.message)
    ? `Redis refused ${commandOf(cause.message, script)}: ${said}. ${cureOf(cause.message)}`
    : undefined;
}

function passingFailure(cause: Error, said: string, isRefused: boolean): string {
  if (cause instanceof CredentialsError) {
    return `Redis was not connected to: ${said}. The call may be repeated once it answers.`;
  }
  return isRefused
    ? `Redis failed: ${said}. ${nextStepAfter(said)}`
    : `Redis did not answer: ${said}. Make sure that it runs and can be reached from here.`;
}

/** The failure of a command that waited `limitMs` for the first connection. */
export function notConnectedWithin(limitMs: number): Error {
  return new Error(`${NO_CONNECTION}: none could be made within ${Math.max(0, Math.round(limitMs))} ms`);
}

/** Whether a failure comes from the connection to a node of a cluster, and not from the answer of a node. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof Error && error.name !== 'ReplyError' && UNREACHABLE.test(error.message);
}

/** Whether a server refuses each command for a while. */
export function isPassing(refusal: Error): boolean {
  return /^(BUSY|LOADING|MASTERDOWN)\b/.test(refusal.message);
}

/** Whether a server answered that it does not know the script of this digest. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** Whether the server does not have a command, or has it under another name. */
export function isUnknownCommand(error: unknown): boolean {
  return error instanceof Error && UNKNOWN_COMMAND.test(error.message);
}

/** Whether the server refused a whole command, since the user may not run it or may not access one of its keys. */
export function isForbidden(error: unknown): boolean {
  const refusal = error instanceof LockError ? error.cause : error;
  return refusal instanceof Error && refusal.message.startsWith('NOPERM');
}

/** Whether a master answered that it is a replica now. Where a script had nothing to write, only WAIT reports it. */
export function isDemoted(error: unknown): error is Error {
  return error instanceof Error && /\bREADONLY\b|WAIT cannot be used with replica/.test(error.message);
}

/**
 * The error of a connection that was set up only in part: another database or user would be used than the one asked
 * for.
 */
export function setupError(refusal: Error): LockConfigurationError {
  const cause = withoutCommand(refusal);
  return new LockConfigurationError(
    `Redis refused to set the connection up: ${plainWords(cause.message)}. Correct the database, user name and password given to the store, or grant +select.`,
    '',
    { cause, ofStore: true },
  );
}

/** The error of options that the client refused. Its own may have a URL in it, and that a password. */
export function optionsError({ message }: Error): LockConfigurationError {
  const said = plainWords(message.replaceAll(/\w+:\/\/\S+/g, 'it was given'));
  return new LockConfigurationError(`The client of Redis refused the options that the store was given: ${said}. Correct them.`);
}

/** Where no node of a cluster could be used, ioredis gives the reason only in the error of the last one. */
function ofNode(error: Error): Error {
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}

/** ioredis adds the command to its errors, and with it passwords, which must not reach a log. */
function withoutCommand(error: Error): Error {
  if (!('command' in error)) {
    return error;
  }
  const clean = new Error(error.message);
  clean.name = error.name;
  return clean;
}

/** The failure in plain words, where ioredis speaks about its own options. */
export function plainWords(message: string): string {
  const [, words = message] = PLAIN_WORDS.find(([pattern]) => pattern.test(message)) ?? [];
  return words.replace(/\.$/, '');
}

/** The command that an error inside a script is about. Servers before 7.2 name only its line. */
function commandOf(message: string, script: Script | undefined): string {
  const line = /@user_script: ?(\d+)/.exec(message)?.[1];
  const command = /redis\.p?call\('(\w+)'/.exec(script?.source.split('\n')[Number(line) - 1] ?? '')?.[1];
  return command ? `${command} in the script '${script?.name}'` : 'a command';
}

function nextStepAfter(said: string): string {
  return /max number of clients/.test(said)
    ? 'Raise maxclients of the server, or find out who keeps so many connections.'
    : 'The call may be repeated once that is over.';
}

function cureOf(message: string): string {
  if (UNKNOWN_COMMAND.test(message)) {
    return 'The server has renamed it or does not have it: locks need it under its own name.';
  }
  if (/^(WRONGPASS|NOAUTH)|password/.test(message)) {
    return 'Correct the user name and password of the client or URL given to the store; where they change, give it the option `credentials`.';
  }
  if (/\bWRONGTYPE\b/.test(message)) {
    return 'Something else wrote a key under the prefix of the locks. Choose another prefix.';
  }
  if (/\bCROSSSLOT\b/.test(message)) {
    return 'The keys of a lock have to be in one slot of the cluster: give the client a keyPrefix without braces, or with a whole pair of them.';
  }
  if (/one of the keys|access.* key/.test(message)) {
    return 'Grant the keys ~<prefix>:*, with the prefix of LockModule after the keyPrefix of the client.';
  }
  return 'Grant the rights that docs/stores/redis.md lists under "The smallest ACL".';
}
