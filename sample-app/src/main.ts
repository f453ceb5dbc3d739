import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { isLockError } from 'nestjs-distributed-lock';
import { AppModule } from './app.module.js';
import { Database } from './database/database.js';
import { startConsoleTraces } from './operations/console-traces.js';
import { Settings } from './settings.js';
import { StartUpError } from './start-up.error.js';
import { welcome } from './welcome.js';

async function start(): Promise<void> {
  // Nest would log a failed start with a stack and exit; buffered, the log waits until the start has succeeded.
  const app = await NestFactory.create<NestExpressApplication>(AppModule, { abortOnError: false, bufferLogs: true, autoFlushLogs: false });
  // Locks that are held when the process is stopped are then released at once and need not run out.
  app.enableShutdownHooks();
  const settings = app.get(Settings);
  if (settings.traces === 'console') {
    startConsoleTraces();
  }
  await app.listen(settings.port);
  app.flushLogs();
  const { port } = app.getHttpServer().address() as { port: number };
  console.log(welcome(`http://localhost:${port}`, settings, app.get(Database).description));
}

function explain(error: unknown): unknown {
  if (isLockError(error)) {
    return error.detail;
  }
  if (error instanceof StartUpError) {
    return error.message;
  }
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EADDRINUSE' || code === 'EACCES' ? `${(error as Error).message}. Set PORT to another port.` : error;
}

try {
  await start();
} catch (error) {
  console.error(explain(error));
  process.exit(1);
}
