import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Another process that holds a lock. */
export interface Holder {
  readonly child: ChildProcess;
  readonly fence: number;
  readonly ticket: string;
  /** Lets it leave; whether it still held the lock by its own clock. */
  leave(): Promise<boolean>;
}

export async function startHolder(url: string, key: string, ttl: number, ticket?: string): Promise<Holder> {
  const child = fork('test/fixtures/holder.mjs', [url, key, String(ttl), ...(ticket ? [ticket] : [])], { execArgv: [] });
  const [{ fence, ticket: own }] = (await once(child, 'message')) as [{ fence: number; ticket: string }];
  return {
    child,
    fence,
    ticket: own,
    async leave() {
      const left = once(child, 'message');
      const exited = once(child, 'exit');
      child.send('leave');
      // One that has found out already that it lost the lock says only that.
      const [{ isHeld = false }] = (await left) as [{ isHeld?: boolean }];
      await exited;
      return isHeld;
    },
  };
}
