import type { RedisServer } from './redis-server';

/** A command that a server ran; its source is 'lua' within a script. */
export interface RecordedCommand {
  readonly source: string;
  readonly args: readonly string[];
}

/** Records what a server runs from now on, until `stop()`. */
export async function recordCommands({ client }: RedisServer): Promise<{ commands: readonly RecordedCommand[]; stop: () => void }> {
  const monitor = await client.monitor();
  const commands: RecordedCommand[] = [];
  monitor.on('monitor', (_time: string, args: string[], source: string) => commands.push({ source, args }));
  return { commands, stop: () => monitor.disconnect() };
}

/** Where in the record a process was notified; -1 where it was not. */
export function notified(commands: readonly RecordedCommand[], pid: number): number {
  return commands.findIndex(({ args: [command = '', channel = ''] }) => /^publish$/i.test(command) && channel.includes(`:${pid}:`));
}
