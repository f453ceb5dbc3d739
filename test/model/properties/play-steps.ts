import type { LockedCall } from './locked-call.js';
import type { Process } from './process.js';
import type { Step } from './scenario.js';
import type { Part } from './transactions.js';

/** The calls and transactions that code is inside of. */
export interface Place {
  /** The call of which the locks are around it. */
  readonly parent?: LockedCall | undefined;
  /** The part of a transaction, which may have ended. */
  readonly part?: Part | undefined;
  /** The keys of the tickets that it came with. */
  readonly ticketKeys: readonly string[];
  /** Whether it was handed to `outsideLocks`. */
  readonly isOutside?: boolean | undefined;
}

export const NOWHERE: Place = { ticketKeys: [] };

/** Does one step after the other. Never rejects. */
export async function playSteps(process: Process, steps: readonly Step[], place: Place): Promise<void> {
  for (const step of steps) {
    await playStep(process, step, place);
  }
}

export async function playStep(process: Process, step: Step, place: Place): Promise<void> {
  const { world, library } = process;
  switch (step.do) {
    case 'sleep':
      return process.sleep(step.ms);
    case 'call': {
      const calls = step.calls.map((call) => world.call(process, call, place));
      await (step.awaited ? Promise.all(calls) : undefined);
      return;
    }
    case 'release':
      return place.parent?.releaseEarly();
    case 'make a ticket':
      return place.parent?.makeTicket();
    case 'transaction':
      return process.transactions.run(place, async (part) => {
        await playSteps(process, step.steps, { ...place, part });
        await process.sleep(step.commitMs);
      });
    case 'leave behind':
      return world.follow(
        process,
        process.sleep(step.afterMs).then(() => playSteps(process, step.steps, place)),
      );
    case 'outside locks':
      return library.outsideLocks(() => playSteps(process, step.steps, { part: place.part, ticketKeys: [], isOutside: true }));
    case 'enter tickets': {
      const ticket = world.ticketFor([step.key], step.of);
      const inside = { ...place, ticketKeys: [...place.ticketKeys, ...(ticket?.keys ?? [])] };
      return library.enterTickets(ticket?.text, () => playSteps(process, step.steps, inside));
    }
  }
}
