import { isNativeError } from 'node:util/types';
import { NO_CONNECTION, setupError } from '../redis-errors.js';

/** The server's error where the connection would lead to another database than the one asked for. */
const NO_DATABASE = /\bDB index\b/;
/** The code with which a server begins an error reply. */
const REPLY = /^[A-Z]{2,}[A-Z0-9]*\b/;
/** The error of node-redis for a command that it did not send. */
const NOT_SENT = /^The client is (closed|offline)/;

/**
 * Why a connection failed. node-redis gives up a connection that is refused its database. A provider of credentials may
 * reject with anything.
 */
export function failureOf(error: unknown): Error {
  const failure = withReplyName(asError(error));
  return NO_DATABASE.test(failure.message) ? setupError(failure) : failure;
}

/** Gives error replies the name that ioredis gives them; a batch has error replies inside its reply. */
export function withReplyErrors(reply: unknown): unknown {
  if (Array.isArray(reply)) {
    reply.forEach(withReplyErrors);
  } else if (reply instanceof Error) {
    withReplyName(reply);
  }
  return reply;
}

function withReplyName(error: Error): Error {
  if (REPLY.test(error.message) && !('code' in error)) {
    error.name = 'ReplyError';
  }
  return error;
}

/** Throws why a command failed, in the words that the store knows. */
export function refuse(error: unknown): never {
  const failure = withReplyName(asError(error));
  throw NOT_SENT.test(failure.message) ? new Error(NO_CONNECTION, { cause: failure }) : failure;
}

/** An error of a time limit is none to `isNativeError`, and one of another realm none to `instanceof`. */
function asError(thrown: unknown): Error {
  return isNativeError(thrown) || thrown instanceof Error ? thrown : new Error(String(thrown));
}
