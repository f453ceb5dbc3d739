import type { INestApplication } from '@nestjs/common';
import { readFileSync } from 'node:fs';

const { version } = JSON.parse(readFileSync('node_modules/@nestjs/core/package.json', 'utf8')) as { version: string };

/** The major version of the Nest that the suites run on: `npm run test:nest` has older ones. */
export const NEST_MAJOR = Number.parseInt(version, 10);

/** Prepares an application of `createTestingModule` for `app.use()`. In Nest 10 only `NestFactory` prepares Fastify. */
export async function prepareForMiddleware(application: INestApplication): Promise<void> {
  if (NEST_MAJOR === 10) {
    await application.getHttpAdapter().init?.();
  }
}
