import { EntitySchema, MikroORM, type Options } from '@mikro-orm/postgresql';
import type { PostgresServer } from './postgres-server.js';

/** MikroORM asks for an entity, also of those who only send statements. */
const UNUSED = new EntitySchema<{ id: number }>({ name: 'unused', properties: { id: { type: 'number', primary: true } } });

export function openMikroOrm(server: PostgresServer, options: Options = {}): Promise<MikroORM> {
  return MikroORM.init({ clientUrl: server.url, dbName: 'postgres', entities: [UNUSED], pool: { min: 0, max: 10 }, ...options });
}
