import { productIn, type Product } from '../kit/product.js';

/** Aurora alone has a row here. Its version is else that of MySQL. */
export const AURORA = `SHOW GLOBAL VARIABLES LIKE 'aurora_version'`;

const TIDB = 'TiDB has no stored procedures, and these locks are made of them: ensureSchema() fails there. Keep them in another database.';

const PRODUCTS = [
  [/-TiDB-v?(\d\S*)/, 'TiDB', TIDB],
  [/^(\d\S*)-Vitess/, 'Vitess'],
  // Some versions of MariaDB begin with one that old replicas of MySQL understand.
  [/^(?:5\.5\.5-)?(\d[\d.]*)-MariaDB/i, 'MariaDB'],
  [/^(\d[\d.]*)/, 'MySQL'],
] as const;

/** What the server is, by its version; undefined where that does not say. */
export function productBy(version: string, isAurora: boolean): Product | undefined {
  const found = productIn(version, PRODUCTS);
  return found && isAurora ? { ...found, name: 'Aurora' } : found;
}
