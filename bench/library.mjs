// This library, and the copies of its dependencies that it loads itself: bench/node_modules holds other copies for the
// peers.
import { createRequire } from 'node:module';

const require = createRequire(new URL('../dist/esm/index.js', import.meta.url));

export const { Redis } = require('ioredis');
export const { createClient } = require('redis');
export const pg = require('pg');
export const mysql2 = require('mysql2');
export const { NestFactory } = require('@nestjs/core');
export const ioredisVersion = require('ioredis/package.json').version;
export const pgVersion = require('pg/package.json').version;
export const mysql2Version = require('mysql2/package.json').version;
export { DistributedLock, DistributedSemaphore, LockModule, LockService, MemoryLockStore, RedisLockStore } from '../dist/esm/index.js';
export { QuorumLockStore } from '../dist/esm/quorum/index.js';
export { MySqlLockStore } from '../dist/esm/mysql/index.js';
export { PostgresLockStore } from '../dist/esm/postgres/index.js';
