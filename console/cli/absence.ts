import { LockConfigurationError } from '../../lib/core/words/errors.js';
import type { CommandLine } from './command-line.js';
import type { Session } from './session.js';

/** For how long the store is searched for any lock, in milliseconds. */
const SEARCH_MS = 2_000;

const FOUND = { none: ', and no lock is held there', unknown: '' } as const;
const SILENT =
  'No process answers, but locks are held: their processes have crashed, hang, or have an older version of this library. See: list.';

type Place = Pick<CommandLine, 'address' | 'prefix' | 'schema'>;

/** Says that no process answers at the prefix, and why that may be; `found` is added to it. */
export function nobodyAnswers({ address, prefix, schema = 'distributed_lock' }: Place, found = ''): string {
  switch (address.kind) {
    case 'mysql':
      return `If an application holds locks, it has another prefix than "${prefix}" (pass --prefix), or another database.`;
    case 'postgres':
      return silent(
        `the prefix "${prefix}" of the schema "${schema}"${found}`,
        'another prefix or schema (pass --prefix or --schema), another database',
      );
    default:
      return silent(`the prefix "${prefix}"${found}`, 'another prefix (pass --prefix), another server or database number');
  }
}

function silent(where: string, elsewhere: string): string {
  return `No process answers at ${where}. An application that runs has ${elsewhere}, or an older version of this library.`;
}

/**
 * Why a command has found nothing, if no process answers and no lock is held at its prefix; undefined otherwise.
 * Rejects where the store is away.
 */
export async function absenceOf(session: Session, line: CommandLine): Promise<string | undefined> {
  if (session.unheard !== undefined || (await session.locks.survey({})).processes.length > 1) {
    return undefined;
  }
  await session.checkHearing();
  const held = await holdsAny(session);
  return held === 'some' ? undefined : nobodyAnswers(line, FOUND[held]);
}

/** Why a command that asks processes has found nothing, if none has `answered`; undefined otherwise. Likewise. */
export async function silenceOf(session: Session, line: CommandLine, answered: number): Promise<string | undefined> {
  if (answered > 0) {
    return undefined;
  }
  await session.checkHearing();
  const held = await holdsAny(session);
  return held === 'some' ? SILENT : nobodyAnswers(line, FOUND[held]);
}

/** Whether any lock is held at the prefix. */
async function holdsAny({ locks }: Session): Promise<'some' | 'none' | 'unknown'> {
  const listing = locks.list({ prefix: '', limit: 1, searchMs: SEARCH_MS });
  try {
    const found = listing[Symbol.asyncIterator]();
    const { done } = await found.next();
    await found.return?.();
    if (!done) {
      return 'some';
    }
    return listing.leftOut.unsearched ? 'unknown' : 'none';
  } catch (error) {
    // The user may not search the store.
    if (!(error instanceof LockConfigurationError)) {
      throw error;
    }
    return 'unknown';
  }
}
