import { Logger } from '@nestjs/common';
import { printable } from '../core/words/shown.js';
import type { LockTrouble } from '../core/words/lock-event.js';
import { Repetitions } from './repetitions.js';

const logger = new Logger('LockModule');

/** Writes the troubles that an operator of one application should see to the log. */
export class TroubleLog {
  /** A store that flaps, or code that forgets its handles, has many of these. */
  readonly #repetitions = new Repetitions((line) => logger.warn(line));

  write(trouble: LockTrouble): void {
    const lock = named(trouble);
    const where = printable(`Lock ${lock} of ${trouble.by}`);
    switch (trouble.type) {
      case 'lost':
        logger[trouble.reason === 'shutdown' ? 'warn' : 'error'](
          `${where} ${trouble.error.detail.replace(printable(`Lock "${trouble.key}" `), '')}`,
        );
        break;
      case 'forced':
        logger.warn(printable(forcedWords(lock, trouble)));
        break;
      case 'endedLate':
        logger.error(
          `${where} was lost, and its code ended only now, ${Math.round(trouble.heldMs)} ms after it began` +
            `${trouble.thrown === undefined ? '' : ', with an error that no caller waits for'}. Stop it when lock.signal aborts.`,
          trouble.thrown instanceof Error ? trouble.thrown.stack : undefined,
        );
        break;
      case 'heldLong':
        logger.warn(
          `${where} has been held for ${Math.round(trouble.heldMs)} ms, while other calls wait for it: more than ten times the ttl of ` +
            `its holder or of such a call, ${trouble.ttlMs} ms. Shorten what runs inside the lock, or give it a maxHold. ` +
            'This is said once for each key.',
        );
        break;
      case 'unreleased':
        this.#warnOnce(
          trouble,
          `${where} was never released: the handle that acquire() gave was garbage collected after ${Math.round(trouble.heldMs)} ms. The ` +
            "lock is renewed until the process ends. Use 'await using', or release() in a finally block, and set maxHold.",
        );
        break;
      case 'releaseFailed':
        this.#warnOnce(trouble, `${where} was not released, and ends with its lease: ${trouble.error.detail}`);
        break;
      case 'countsDiffer':
        logger.warn(printable(differingWords(lock, trouble)));
        break;
      case 'storeUnavailable':
        logger.error(
          `The lock store '${trouble.store}' is unavailable. ${trouble.error.detail}` +
            (trouble.untold ? ` It was ${trouble.untold} more times since the last such line.` : ''),
        );
        break;
      case 'storeAnswered':
        logger.log(`The lock store '${trouble.store}' answers again, after ${Math.round(trouble.awayMs)} ms.`);
        break;
      case 'leader':
        logLeader(trouble, printable(`${lock} (${trouble.by})`));
        break;
    }
  }

  #warnOnce({ type, store, key }: LockTrouble, message: string): void {
    if (this.#repetitions.isFirst(`${type} ${store} ${key}`, message)) {
      logger.warn(message);
    }
  }
}

function logLeader(event: Extract<LockTrouble, { type: 'leader' }>, who: string): void {
  switch (event.change) {
    case 'elected':
      logger.log(`This process leads ${who} now, at fence ${event.fence}.`);
      break;
    case 'ended':
      if (event.reason === 'threw') {
        logger.error(
          `The leader of ${who} threw after ${Math.round(event.ledMs)} ms. It stands by again after a pause.`,
          event.thrown instanceof Error ? event.thrown.stack : String(event.thrown),
        );
      } else {
        logger.log(`This process no longer leads ${who}, after ${Math.round(event.ledMs)} ms: ${event.reason}.`);
      }
      break;
    case 'stillRuns':
      logger.error(
        `The code of the leader of ${who} still runs, without its lock: ${event.reason}. Another process may lead by now, and this one does ` +
          'not stand by before its code has ended. Stop it when lock.signal aborts.',
      );
      break;
    case 'failed':
      logger.error(`This process cannot stand by to lead ${who}, and tries again. ${event.error.detail}`);
      break;
  }
}

/** A lock by its key, and by its store where that has a name. */
function named({ key, store }: LockTrouble): string {
  return `"${key}"${store === 'default' ? '' : ` in the store '${store}'`}`;
}

/** Who released a lock by force, from where, and why; for the process that held it, whose it was. */
function forcedWords(lock: string, { by: holder, process, fence, forcedBy }: Extract<LockTrouble, { type: 'forced' }>): string {
  const { by, reason } = forcedBy;
  const whose = forcedBy.process === process ? '' : ` of ${holder}`;
  const who = by ? `by ${by} ` : '';
  return `Lock ${lock}${whose} was released by force at fence ${fence}, ${who}from ${forcedBy.process}${reason ? `: ${reason}` : '.'}`;
}

function differingWords(
  lock: string,
  { by, permits, holder, holderPermits, name }: Extract<LockTrouble, { type: 'countsDiffer' }>,
): string {
  return (
    `Semaphore ${lock} has ${permits} permits for ${by}, and ${holderPermits} for ${holder.by}: the smallest count of those inside holds ` +
    `for all. Unless a deploy is changing the count, give both the same. This is said once for each name ('${name}') and pair of counts.`
  );
}
