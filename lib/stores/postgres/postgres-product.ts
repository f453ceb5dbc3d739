import { productIn, type Product } from '../kit/product.js';
import type { Row } from '../sql/dialect.js';

/** What shows the product, as columns of a statement: Aurora has a function of its own, and the others a version of their own. */
export const PRODUCT = `version() AS product, (to_regproc('aurora_version') IS NOT NULL)::text AS is_aurora`;

const COCKROACH =
  'CockroachDB has no LISTEN and NOTIFY, so that waiting processes poll, and its advisory locks of sessions exclude nobody. ' +
  'These locks were never run on it: run their contract there first, or keep them in PostgreSQL.';
const YUGABYTE =
  'YugabyteDB has LISTEN and NOTIFY from 2025.2.3 on; before, waiting processes poll. ' +
  'These locks were never run on it: run their contract there first, or keep them in PostgreSQL.';

const PRODUCTS = [
  [/^CockroachDB .*?v(\d\S*)/, 'CockroachDB', COCKROACH],
  [/-YB-(\d\S*)/, 'YugabyteDB', YUGABYTE],
  [/^PostgreSQL (\S+)/, 'PostgreSQL'],
] as const;

/** What the server is, by the columns of PRODUCT; undefined where they do not say. */
export function productBy({ product, is_aurora: isAurora }: Row): Product | undefined {
  const found = productIn(String(product), PRODUCTS);
  return found && isAurora === 'true' ? { ...found, name: 'Aurora' } : found;
}
