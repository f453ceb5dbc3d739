import { LockConfigurationError } from '../core/errors.js';

/** The schema where everything of this library lives, unless another one is named. */
export const DEFAULT_SCHEMA = 'distributed_lock';

/** The longest name that PostgreSQL keeps whole, in bytes. */
const LONGEST_NAME = 63;

/** The name of a schema as it stands in SQL; throws `LockConfigurationError` for one that PostgreSQL would cut or refuse. */
export function quoteSchema(schema: unknown, place: string): string {
  if (typeof schema !== 'string' || schema === '' || schema.includes('\0') || Buffer.byteLength(schema) > LONGEST_NAME) {
    throw new LockConfigurationError(
      `${place}: schema is ${JSON.stringify(schema)}. Use a name of 1 to ${LONGEST_NAME} bytes, such as '${DEFAULT_SCHEMA}'.`,
    );
  }
  return `"${schema.replaceAll('"', '""')}"`;
}
