import { CALM } from './network.js';
import type { Process } from './process.js';
import type { Simulation } from './simulation.js';

type Strike = (simulation: Simulation) => void;

/** Plans what goes wrong in a run: in a quarter of them nothing, in the others some kinds of faults, each on its own. */
export function inflict(simulation: Simulation): void {
  const { random, network, timeline, history } = simulation;
  if (random.chance(0.25)) {
    return;
  }
  // Mostly an accident now and then, sometimes a storm in which leases are lost.
  const rate = () => (random.chance(0.4) ? random.between(0.005, random.pick([0.05, 0.05, 0.6])) : 0);
  network.weather = Object.fromEntries(Object.keys(CALM).map((kind) => [kind, rate()])) as typeof CALM;
  const untilMs = random.between(2_000, 8_000);
  timeline.after(untilMs, () => {
    network.weather = CALM;
  });
  const plan = (share: number, most: number, strike: Strike) => {
    for (let count = random.chance(share) ? random.whole(1, most) : 0; count > 0; count--) {
      timeline.after(random.between(0, untilMs), () => {
        history.fault(strike.name);
        strike(simulation);
      });
    }
  };
  plan(0.4, 2, crash);
  plan(0.4, 4, stop);
  plan(0.25, 2, deafen);
  plan(0.25, 2, cutSubscriber);
  plan(0.3, 4, cutOff);
  plan(0.04, 1, jumpAhead);
  plan(0.05, 2, force);
  // A fence may repeat where the counter is lost while the clock is behind, so no run has both.
  if (random.chance(0.1)) {
    plan(0.5, 3, restart);
  } else {
    plan(0.4, 3, stepBack);
  }
}

/** Half of the time whoever was granted a lock last: a fault of somebody who has nothing to lose shows little. */
function anyone({ random, processes, history }: Simulation): Process {
  const found = random.chance(0.5) ? processes.find(({ id }) => id === history.last.process) : undefined;
  return found ?? random.pick(processes);
}

function crash(simulation: Simulation): void {
  const process = anyone(simulation);
  // Somebody must be left who can wait in vain.
  if (simulation.processes.filter(({ dead }) => !dead).length > 1 && !process.dead) {
    process.crash();
    if (simulation.random.chance(0.5)) {
      process.subscriber.cut();
    } else {
      process.subscriber.deafen();
    }
  }
}

/** Like SIGSTOP, at any moment or between a command and its reply. */
function stop(simulation: Simulation): void {
  const { history, random, timeline, ttlMs } = simulation;
  const process = anyone(simulation);
  const stopNow = () => {
    history.fault('stop');
    process.stop();
    timeline.after(ttlMs * random.between(0.2, 2.5), () => {
      history.fault('resume');
      process.resume();
    });
  };
  if (random.chance(0.5)) {
    stopNow();
  } else {
    process.onSent = stopNow;
  }
}

/** All its commands and replies are lost for a while. */
function cutOff(simulation: Simulation): void {
  const { random, timeline, history } = simulation;
  const process = anyone(simulation);
  process.connection.down = true;
  process.soundSince = undefined;
  timeline.after(random.between(100, 3_000), () => {
    history.fault('connected');
    process.connection.down = false;
    process.soundSince = process.dead ? undefined : timeline.now;
  });
}

function restart({ server, processes }: Simulation): void {
  server.restart();
  for (const process of processes) {
    process.subscriber.cut();
  }
}

const deafen: Strike = (simulation) => anyone(simulation).subscriber.deafen();
const cutSubscriber: Strike = (simulation) => anyone(simulation).subscriber.cut();
const stepBack: Strike = ({ server, random }) => server.setClock(-random.between(10, random.pick([500, 5_000, 60_000])));
const jumpAhead: Strike = ({ server, random }) => server.setClock(random.between(10, random.pick([500, 5_000, 90_000])));
const force: Strike = ({ server }) => server.forceRelease();
