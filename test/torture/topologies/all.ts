import { Cluster } from './cluster.js';
import { MySql } from './mysql.js';
import { Postgres } from './postgres.js';
import { Quorum } from './quorum.js';
import { Sentinel } from './sentinel.js';
import { Single } from './single.js';
import type { Topology } from './topology.js';

export const TOPOLOGIES = {
  single: () => Single.start(),
  sentinel: () => Sentinel.start(),
  cluster: () => Cluster.start(),
  quorum: () => Quorum.start(),
  'new-quorum': () => Quorum.start(true),
  postgres: () => Postgres.start(),
  mysql: () => MySql.start(),
} satisfies Record<string, () => Promise<Topology>>;

export type TopologyName = keyof typeof TOPOLOGIES;
