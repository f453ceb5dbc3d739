import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import type { Duration } from 'nestjs-distributed-lock';
import { AppModule } from '../src/app.module.js';
import { Database } from '../src/database/database.js';
import type { LockPlace } from '../src/lock-place.js';
import { Settings } from '../src/settings.js';

/** The choices of a test for an application. */
export interface Choices {
  readonly locks?: LockPlace;
  readonly lockWait?: Duration;
  readonly change?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
}

/** The sample application on a free port, with a database that other ones of the same test may share. */
export async function startApplication(database: Database, choices: Choices = {}): Promise<NestExpressApplication> {
  // A test sets its own `lockWait` where it claims something about waits.
  const { locks = { store: 'memory' }, lockWait = '2m', change = (builder) => builder } = choices;
  const builder = Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(Settings)
    .useValue(Object.assign(new Settings({}), { locks, lockWait }))
    .overrideProvider(Database)
    .useValue(database);
  const app = (await change(builder).compile()).createNestApplication<NestExpressApplication>({ logger: false });
  await app.listen(0);
  return app;
}
