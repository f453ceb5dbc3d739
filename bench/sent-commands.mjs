// Counts what the clients of this process send. INFO commandstats also counts what scripts run inside the server, and
// tells the two apart only by a list of commands for each subject.
import { mysql2, pg, Redis } from './library.mjs';

let sent = 0;
let pings = 0;
const sentByPort = new Map();

const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (command, ...rest) {
  sent += 1;
  if (command.name === 'ping') {
    pings += 1;
  } else {
    count(this.options.port);
  }
  return sendCommand.call(this, command, ...rest);
};

const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (...args) {
  sent += 1;
  count(this.port);
  return query.apply(this, args);
};

for (const name of ['query', 'execute']) {
  const send = mysql2.Connection.prototype[name];
  mysql2.Connection.prototype[name] = function (...args) {
    sent += 1;
    count(this.config.port);
    return send.apply(this, args);
  };
}

function count(port) {
  sentByPort.set(port, (sentByPort.get(port) ?? 0) + 1);
}

export function sentCommands() {
  return sent;
}

export function sentPings() {
  return pings;
}

/**
 * Begins to count round trips; the function that it gives says how many there have been. Servers that are asked at the
 * same time cost the time of one round trip, so only the round trips of the server that was asked most often count.
 */
export function countRoundTrips() {
  const before = new Map(sentByPort);
  return () => Math.max(0, ...[...sentByPort].map(([port, after]) => after - (before.get(port) ?? 0)));
}
