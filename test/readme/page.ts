// The code of docs/operations/page.md.
import { Module, type CanActivate } from '@nestjs/common';
import { LockModule, RedisLockStore, type LockOperations } from 'nestjs-distributed-lock';
import { LockPageModule } from 'nestjs-distributed-lock/page';

declare class AdminGuard implements CanActivate {
  canActivate(): boolean;
}

interface Operator {
  readonly name: string;
  readonly mayRelease: boolean;
}

@Module({
  imports: [
    LockModule.forRoot({ store: new RedisLockStore('redis://localhost:6379') }),
    LockPageModule.forRoot({ path: 'ops/locks', guards: [AdminGuard] }),
  ],
})
export class AppModule {}

export const withActions = [
  LockPageModule.forRoot({ guards: [AdminGuard], actions: ({ user }: { user: Operator }) => user.mayRelease && user.name }),
];

export async function printLastIncident(locks: LockOperations): Promise<void> {
  const [last] = await locks.incidents({ since: '1h' });
  console.log(last?.at, last?.type, last?.key, last?.site, last?.reason);
}
