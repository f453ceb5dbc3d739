// Measures the library beside its peers and the least that a lock has to send: npm run bench.
import { readFileSync, writeFileSync } from 'node:fs';
import { chart } from './chart.mjs';
import { environment } from './environment.mjs';
import { readOptions } from './options.mjs';
import { withProgress } from './progress.mjs';
import { startProxy } from './proxy.mjs';
import { mysqlVersion } from './mysql-server.mjs';
import { postgresVersion } from './postgres-server.mjs';
import { findRedis, startRedis } from './redis-server.mjs';
import { stores } from './rows/stores.mjs';
import { SIZES } from './sizes.mjs';
import { storesTable } from './stores-table.mjs';
import { table } from './table.mjs';

const RESULTS = new URL('results.json', import.meta.url);

const { quick, json, isWhole, writes, rows } = readOptions();
findRedis();
const [postgres, mysql] = rows.includes(stores) ? [postgresVersion(), mysqlVersion()] : [];
// The exit handlers stop the servers, of which there are many.
process.setMaxListeners(0);
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
const start = performance.now();
const server = await startRedis();
const proxy = await withProgress('a proxy that adds a millisecond', () => startProxy(server.port));
process.stderr.write(
  `a PING takes ${proxy.addedMs.toFixed(2)} ms more through the proxy${proxy.isAccurate ? '' : ', which is too far from 1'}\n`,
);

const context = { server, proxy, sizes: quick ? SIZES.quick : SIZES.full };
const lines = [];
try {
  for (const row of rows) {
    lines.push(...(await withProgress(row.name, () => row.run(context))));
  }
} catch (error) {
  // The rows before it took long to measure.
  console.log(table(lines.filter(({ row }) => !row.startsWith('stores '))));
  throw error;
}
proxy.stop();
await server.stop();

const seconds = Math.round((performance.now() - start) / 1_000);
const results = { ...environment(server.version, postgres, mysql), quick, seconds, proxyAddedMs: proxy.addedMs, rows: lines };
if (writes) {
  const kept = isWhole ? results : updated(JSON.parse(readFileSync(RESULTS, 'utf8')), results, rows);
  writeFileSync(RESULTS, `${JSON.stringify(kept, undefined, 2)}\n`);
  writeFileSync(new URL('results.svg', import.meta.url), chart(kept.rows));
}
if (json) {
  console.log(JSON.stringify(results, undefined, 2));
} else {
  const judged = lines.filter(({ met }) => met !== null);
  const [ofStores, others] = [true, false].map((wanted) => lines.filter(({ row }) => row.startsWith('stores ') === wanted));
  console.log([others.length > 0 && table(others), ofStores.length > 0 && storesTable(ofStores)].filter(Boolean).join('\n\n'));
  console.log(
    `\n${judged.filter(({ met }) => met).length} of ${judged.length} targets met on Node ${process.versions.node}, in ${seconds} s`,
  );
}

/** The results of the last whole run with the rows that were measured anew, whose ratios are of one run as well. */
function updated(before, after, measured) {
  const names = new Set(after.rows.map(({ row }) => row));
  const again = [...(before.again ?? []), { date: after.date, node: after.node, rows: measured.map(({ name }) => name) }];
  const first = before.rows.findIndex(({ row }) => names.has(row));
  const others = before.rows.filter(({ row }) => !names.has(row));
  return { ...before, again, rows: others.toSpliced(Math.max(0, first), 0, ...after.rows) };
}
