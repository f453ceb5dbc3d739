import { Client } from './client.js';
import { CLOCK_STEP_MS, STEP_MS, type FaultKind, type Scope } from './scope.js';
import type { Server } from './server.js';
import { isGone, keysOf, nameOf, type State, type Transit } from './state.js';

/** One step of the world; `run` changes a copy of the state. */
export interface Move {
  readonly who: string;
  readonly what: string;
  readonly run: (state: State) => void;
}

/**
 * The moves that may come next. Each process, each command and each message may be next; time passes once nothing else
 * has to happen first.
 */
export class Moves {
  readonly #scope: Scope;
  readonly #server: Server;
  readonly #keys: readonly string[];

  constructor(scope: Scope, server: Server) {
    this.#scope = scope;
    this.#server = server;
    this.#keys = keysOf(scope);
  }

  /** Everything that may happen in a state. */
  from(state: State): Move[] {
    const moves = this.#deliveries(state);
    state.processes.forEach((process, at) => {
      if (process.state === 'up') {
        moves.push(...this.#timers(state, at));
      }
    });
    // Messages on their way arrive, and due timers fire, before time passes: later is a fault.
    const mayWait = moves.every(({ who }) => who === LATE);
    state.processes.forEach((process, at) => {
      if (process.state === 'up') {
        moves.push(...this.#choices(state, at));
      }
    });
    if (mayWait && !this.#scope.isInstant) {
      moves.push(this.#time);
    }
    if (state.faultsLeft > 0) {
      moves.push(...this.#faults(state));
    }
    state.processes.forEach((process, at) => {
      if (process.state === 'stopped') {
        moves.push({ who: nameOf(at), what: 'goes on', run: (next) => void (processOf(next, at).state = 'up') });
      }
    });
    return moves;
  }

  /** The one thing that happens next where nothing goes wrong any more, callers wait, and code ends at once. */
  fair(state: State): Move {
    const [late] = state.transits.flatMap(({ isLate }, at) => (isLate ? [at] : []));
    if (late !== undefined) {
      return { who: 'network', what: 'never delivers it', run: (next) => void next.transits.splice(late, 1) };
    }
    const [delivery] = this.#deliveries(state);
    if (delivery) {
      return delivery;
    }
    for (const [at, { state: up, calls }] of state.processes.entries()) {
      const [timer] = up === 'up' ? this.#timers(state, at) : [];
      if (timer) {
        return timer;
      }
      const running = up === 'up' ? calls.findIndex(({ stage }) => stage === 'running') : -1;
      if (running >= 0) {
        return this.#move(at, 'ends', (client) => client.end(running));
      }
    }
    return this.#time;
  }

  readonly #time: Move = {
    who: 'time',
    what: `${STEP_MS} ms pass`,
    run: (next) => {
      next.now += STEP_MS;
      this.#server.tidy(next);
    },
  };

  #deliveries(state: State): Move[] {
    const moves: Move[] = [];
    const seen = new Set<string>();
    state.transits.forEach((transit, at) => {
      // A connection keeps the order of what it carries.
      const connection = `${transit.phase}${transit.process}`;
      if (!transit.isLate && seen.has(connection)) {
        return;
      }
      if (!transit.isLate) {
        seen.add(connection);
      }
      const receiver = transit.phase === 'command' ? undefined : state.processes[transit.process];
      if (receiver?.state !== 'stopped') {
        moves.push({
          who: transit.isLate ? LATE : transit.phase === 'command' ? 'server' : nameOf(transit.process),
          what: `${transit.phase === 'command' ? 'carries out' : 'gets'} ${wordsFor(transit)}`,
          run: (next) => this.#deliver(next, at),
        });
      }
    });
    return moves;
  }

  #deliver(state: State, at: number): void {
    const [transit] = state.transits.splice(at, 1) as [Transit];
    if (transit.phase === 'command') {
      this.#server.carryOut(state, transit);
      return;
    }
    const client = new Client(state, transit.process, this.#keys, this.#scope.flaw);
    if (transit.phase === 'reply') {
      client.answered(transit);
    } else {
      client.notified(transit);
    }
  }

  #timers(state: State, at: number): Move[] {
    const steps = new Client(state, at, this.#keys, this.#scope.flaw).due();
    return steps.map(({ what }, index) => this.#move(at, what, (client) => client.due()[index]?.run()));
  }

  /** The moves of a user: begins a call, ends one, gives one up. */
  #choices({ processes }: State, at: number): Move[] {
    const moves: Move[] = [];
    const { calls } = processes[at] as State['processes'][number];
    const first = calls.findIndex(({ stage }) => stage === 'new');
    if (first >= 0) {
      moves.push(this.#move(at, 'begins a call', (client) => client.begin(first)));
      if (this.#scope.tickets) {
        for (const [other, holder] of processes.entries()) {
          const lease = other === at ? undefined : holder.calls.find(({ stage }) => stage === 'running')?.leases[0];
          // No process joins a permit.
          if (lease && typeof lease.shares !== 'number') {
            moves.push(this.#move(at, `begins a call with the ticket of ${lease.owner}`, (client) => client.begin(first, lease)));
          }
        }
      }
    }
    calls.forEach(({ stage, gaveUp }, call) => {
      if (stage === 'running') {
        moves.push(this.#move(at, 'ends its call', (client) => client.end(call)));
      } else if (stage === 'entering' && !gaveUp && this.#scope.givesUp) {
        moves.push(this.#move(at, 'gives up', (client) => client.giveUp(call)));
      }
    });
    return moves;
  }

  #faults(state: State): Move[] {
    const moves: Move[] = [];
    const fault = (kind: FaultKind, who: string, what: string, run: (next: State) => void): void => {
      if (this.#scope.kinds.includes(kind)) {
        const move = (next: State): void => {
          next.faultsLeft--;
          run(next);
        };
        moves.push({ who, what: `FAULT: ${what}`, run: move });
      }
    };
    state.transits.forEach((transit, at) => {
      const what = wordsFor(transit);
      fault('lost', 'network', `loses ${what}`, (next) => void next.transits.splice(at, 1));
      if (!transit.isLate) {
        fault('late', 'network', `holds back ${what}`, (next) => void ((next.transits[at] as Transit).isLate = true));
      }
      const mayBeDoubled = !changesHolds(transit) || state.processes[transit.process]?.sendsAgain === true;
      if (transit.phase !== 'reply' && !transit.isCopy && mayBeDoubled) {
        fault('doubled', 'network', `doubles ${what}`, (next) => void next.transits.push({ ...transit, isCopy: true, isLate: true }));
      }
    });
    state.processes.forEach((process, at) => {
      if (!isGone(process)) {
        fault('crashed', nameOf(at), 'crashes', (next) => this.#crash(next, at, 'crashed'));
        fault('cut', nameOf(at), 'loses its power', (next) => this.#crash(next, at, 'cut'));
      }
      if (process.state === 'up') {
        fault('stopped', nameOf(at), 'is stopped', (next) => void (processOf(next, at).state = 'stopped'));
      }
    });
    fault('ahead', 'server', 'its clock is set ahead', (next) => {
      next.aheadMs += CLOCK_STEP_MS;
      next.epoch++;
      this.#server.tidy(next);
    });
    fault('back', 'server', 'its clock is set back', (next) => {
      next.aheadMs -= CLOCK_STEP_MS;
      next.wasSetBack = true;
    });
    if (state.stored.keys.length > 0) {
      fault('flushed', 'server', 'loses what it has stored', (next) => {
        next.stored = { keys: [], done: [], fence: 0 };
        next.released.length = 0;
        next.wasFlushed = true;
        next.epoch++;
      });
    }
    for (const { key, grant, shared } of state.stored.keys) {
      if (grant || (shared && shared.holds.length > 0)) {
        fault('forced', 'operator', `releases ${key} by force`, (next) => {
          next.epoch++;
          this.#server.force(next, key);
        });
      }
    }
    return moves;
  }

  /** Its memory is gone; what it has sent is on its way. */
  #crash(state: State, at: number, how: 'crashed' | 'cut'): void {
    Object.assign(processOf(state, at), { state: how, calls: [], lines: [], releases: [] });
    const left = state.transits.filter(({ process, phase }) => process !== at || phase === 'command');
    state.transits.splice(0, Infinity, ...left);
  }

  #move(at: number, what: string, run: (client: Client) => void): Move {
    return { who: nameOf(at), what, run: (next) => run(new Client(next, at, this.#keys, this.#scope.flaw)) };
  }
}

const LATE = 'late';

/**
 * Whether a command lets a hold in or out. It arrives twice where a client sends it again by itself, and nowhere else.
 */
function changesHolds({ phase, kind }: Transit): boolean {
  return phase === 'command' && kind !== 'renew' && kind !== 'leave';
}

function processOf(state: State, at: number): State['processes'][number] {
  return state.processes[at] as State['processes'][number];
}

function wordsFor({ phase, kind, key, hold, place, next, answer, process, isCopy }: Transit): string {
  const names = [hold, next && `for ${next.hold}`, place && `at ${place}`].filter(Boolean).join(' ');
  const copy = isCopy ? 'a copy of ' : '';
  if (phase === 'message') {
    return `${copy}the message to ${nameOf(process)}: ${kind} on ${key} ${names}`;
  }
  const reply = answer && (answer.held ? `, granted ${answer.fence || ''}` : answer.released ? ', released' : ', no');
  return `${copy}${phase === 'reply' ? 'the reply to ' : ''}${kind} ${key} ${names}${reply ?? ''}`;
}
