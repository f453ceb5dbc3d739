import 'reflect-metadata';
import { Module, type CanActivate, type ExecutionContext, type INestApplication } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { NestFactory } from '@nestjs/core';
import type { AddressInfo } from 'node:net';
import { LockModule, LockService, MemoryLockStore, type LockStore } from 'nestjs-distributed-lock';
import { LockPageModule, type LockPageOptions } from 'nestjs-distributed-lock/page';

export const PLATFORMS = { express: () => new ExpressAdapter(), fastify: () => new FastifyAdapter() } as const;

/** The parts of an application of a test. */
export interface PageSettings {
  readonly page?: LockPageOptions;
  readonly platform?: keyof typeof PLATFORMS;
  readonly store?: LockStore;
  readonly stores?: Readonly<Record<string, LockStore>>;
  /** Whether the end of the application ends connections, also those that are in use. Default: true. */
  readonly forceCloseConnections?: boolean;
  /** Is called before the application listens. */
  readonly prepare?: (app: INestApplication) => void;
}

/** An application with the page. */
export interface PageApplication {
  readonly app: INestApplication;
  readonly locks: LockService;
  /** Without a slash at its end. */
  readonly url: string;
}

export async function startApplication({
  page,
  platform = 'express',
  store,
  stores,
  forceCloseConnections = true,
  prepare,
}: PageSettings = {}): Promise<PageApplication> {
  @Module({
    imports: [
      LockModule.forRoot(stores ? { stores } : { store: store ?? new MemoryLockStore() }),
      LockPageModule.forRoot({ ...(page?.guards ? {} : { access: 'anybody' }), ...page }),
    ],
  })
  class AppModule {}
  const app = await NestFactory.create(AppModule, PLATFORMS[platform](), { logger: false, forceCloseConnections });
  prepare?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return { app, locks: app.get(LockService), url: `http://127.0.0.1:${port}` };
}

/** Lets in whoever has the header or the cookie, for as long as it is open. */
export class DoorGuard implements CanActivate {
  static isOpen = true;

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
    return DoorGuard.isOpen && `${headers['authorization']} ${headers['cookie']}`.includes('let-me-in');
  }
}
