// Counts what the clients of this process send. INFO commandstats also counts what scripts run inside the server, and tells
// the two apart only by a list of commands for each subject.
import { Redis } from './library.mjs';

let sent = 0;
let pings = 0;
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (command, ...rest) {
  sent += 1;
  if (command.name === 'ping') {
    pings += 1;
  }
  return sendCommand.call(this, command, ...rest);
};

export function sentCommands() {
  return sent;
}

export function sentPings() {
  return pings;
}
