import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { RedisServer } from './redis-server';

/** A command that a server ran; its source is 'lua' within a script. */
export interface RecordedCommand {
  readonly source: string;
  readonly args: readonly string[];
}

/**
 * Records the commands that a server runs from now on, until `stop()`, by a socket of its own: a client of ioredis
 * fails where a command is run between its MONITOR and the answer.
 */
export async function recordCommands({ port }: RedisServer): Promise<{ commands: readonly RecordedCommand[]; stop: () => void }> {
  const socket = connect(port, '127.0.0.1').on('error', () => socket.destroy());
  const commands: RecordedCommand[] = [];
  const lines = createInterface(socket);
  socket.write('MONITOR\r\n');
  await once(lines, 'line');
  // +1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
  lines.on('line', (line) => {
    const [, source = ''] = /^\+\S+ \[\d+ (\S+)\]/.exec(line) ?? [];
    const args = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replaceAll(/\\(["\\])/g, '$1'));
    commands.push({ source, args });
  });
  return { commands, stop: () => socket.destroy() };
}

/** Where in the record a process was notified; -1 where it was not. */
export function notified(commands: readonly RecordedCommand[], pid: number): number {
  return commands.findIndex(({ args: [command = '', channel = ''] }) => /^publish$/i.test(command) && channel.includes(`:${pid}:`));
}
