import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { COUNTERS, HISTOGRAMS, LEVELS, LIMITS, STATES } from '../../../lib/operate/telemetry/metrics';
import { LABELS, NAMES } from './prometheus-backend';

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string; readonly legendFormat?: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}

const run = promisify(execFile);
const DASHBOARD = 'docs/operations/grafana-dashboard.json';
const RULES = 'docs/operations/alerts.yml';

const page = readFileSync('docs/operations/metrics.md', 'utf8');
const rules = readFileSync(RULES, 'utf8');
const { panels, templating } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as Dashboard;
const queries = [
  ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...templating.list.flatMap(({ definition }) => definition ?? []),
];
const histograms: ReadonlySet<string> = new Set(Object.values(HISTOGRAMS).map(({ name }) => name));
const metrics = [HISTOGRAMS, COUNTERS, LEVELS, LIMITS, STATES].flatMap((list) =>
  Object.values<{ name: string; labels: readonly string[] }>(list),
);
/** The series that Prometheus has of each metric, with the name in OpenTelemetry. */
const series = new Map(
  [...NAMES].flatMap(([name, metric]) =>
    (histograms.has(metric) ? ['_bucket', '_sum', '_count'] : ['']).map((part) => [`${name}${part}`, metric] as const),
  ),
);

/** The names in queries that are neither series nor labels. */
function unknownIn(text: string): string[] {
  return [...text.matchAll(/\bdistributed_lock_\w+/g)].map(([name]) => name).filter((name) => !series.has(name) && !LABELS.has(name));
}

test('queries of the dashboard and the rules name only series that exist, and each metric has a panel', () => {
  expect(queries.length).toBeGreaterThan(20);
  expect(queries.flatMap(unknownIn)).toEqual([]);
  expect(unknownIn(rules)).toEqual([]);
  expect(unknownIn('sum(distributed_lock_waiters) by (distributed_lock_store)')).toEqual(['distributed_lock_waiters']);
  const shown = new Set(queries.flatMap((query) => [...query.matchAll(/\bdistributed_lock_\w+/g)].map(([name]) => series.get(name))));
  expect([...NAMES.values()].filter((metric) => !shown.has(metric))).toEqual([]);
});

test('a query selects by labels that its metric has', () => {
  const wrong = [...queries, rules].flatMap((text) =>
    [...text.matchAll(/(distributed_lock_\w+)\{(.*?)\}/g)].flatMap(([, name, selector]) => {
      const labels = metrics.find((metric) => metric.name === series.get(name as string))?.labels ?? [];
      const selected = [...(selector as string).matchAll(/(\w+)(?==~?"|!=)/g)].map(([, label]) => LABELS.get(label as string) ?? label);
      return selected.filter((label) => !labels.includes(label as string)).map((label) => `${name} has no ${label}`);
    }),
  );
  expect(wrong).toEqual([]);
});

test('the page lists each metric and label once, and says what to do about each alert', () => {
  const rows = [...page.matchAll(/^\| `(distributed_lock\.[\w.]+|error\.type)`/gm)].map(([, name]) => name);
  expect(rows.toSorted()).toEqual([...metrics.map(({ name }) => name), ...LABELS.values()].toSorted());
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  expect(alerts).toHaveLength(11);
  expect([...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name)).toEqual(alerts);
  const runbooks = [...rules.matchAll(/runbook_url: https:\/\/unpkg\.com\/nestjs-distributed-lock\/(docs\/\S+\.md)#(\w+)$/gm)];
  expect(runbooks.map(([, file, section]) => [file, section])).toEqual(
    alerts.map((name) => ['docs/operations/metrics.md', name?.toLowerCase()]),
  );
});

test('Prometheus accepts the rules, which fire when they should and not otherwise', async () => {
  const { stdout } = await run('promtool', ['check', 'rules', RULES]);
  expect(stdout).toContain('SUCCESS: 11 rules found');
  await run('promtool', ['test', 'rules', 'test/operate/telemetry/alerts.test.yml']);
});

/** The series that are counted, with the rule that fires, and the panel or the line of a panel that shows it. */
const COUNTED = [
  ['distributed_lock_losses_total', 'error_type="expired"', 'LockLost', 'Losses'],
  ['distributed_lock_deadlocks_total', 'distributed_lock_scope="fleet"', 'LockDeadlock', 'Deadlocks'],
  ['distributed_lock_acquire_duration_seconds_count', 'error_type="store"', 'LockRefusedByStore', 'refused by the store'],
  ['distributed_lock_release_failures_total', '', 'LockReleaseFailed', 'release failed'],
] as const;

test.each([
  ['the first of a series that is new', '_x3 1x10', '9x24', '4m', true],
  ['the first of a series that began at 0', '0x3 1x10', '9x24', '4m', true],
  ['nothing, in a series that began at 0', '0x24', '9x24', '24m', false],
  ['nothing new', '3x24', '9x24', '24m', false],
  ['nothing, where a process with old values is seen for the first time', '_x3 3x24', '_x3 9x24', '4m', false],
  ['the next one there', '_x3 3 4x24', '_x3 9x24', '4m', true],
])('panels and rules agree on %s', async (_, values, limits, at, isShown) => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-rules-'));
  try {
    const shown = panels.flatMap(({ title, targets }) => targets.map(({ expr, legendFormat }) => ({ expr, names: [title, legendFormat] })));
    const tests = COUNTED.map(([name, label, alertname, line]) => {
      const { expr = '' } = shown.find(({ names }) => names.includes(line)) ?? {};
      const query = expr.replaceAll('$__range', '15m').replaceAll(/\$(store|name)/g, '.+');
      return {
        interval: '1m',
        input_series: [
          { series: `${name}{instance="a",distributed_lock_name="n",distributed_lock_store="s",${label}}`, values },
          { series: 'distributed_lock_waiter_limit{instance="a",distributed_lock_store="s"}', values: limits },
        ],
        // A rule and its panel, a minute after the event; a series of old values is older than each of the spans.
        promql_expr_test: [`((${query}) > bool 0) or vector(0)`, `count(ALERTS{alertname="${alertname}"}) or vector(0)`].map((asked) => ({
          expr: asked,
          eval_time: at,
          exp_samples: [{ labels: '{}', value: Number(isShown) }],
        })),
      };
    });
    const file = join(folder, 'agree.yml');
    writeFileSync(file, JSON.stringify({ rule_files: [resolve(RULES)], evaluation_interval: '1m', tests }));
    await run('promtool', ['test', 'rules', file]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('Prometheus accepts the queries of the dashboard', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-queries-'));
  try {
    const file = join(folder, 'queries.yml');
    const asRules = panels.flatMap(({ targets }, panel) =>
      targets.map(({ expr }, at) => ({ record: `panel_${panel}_${at}`, expr: expr.replaceAll(/\$__(rate_interval|range)/g, '5m') })),
    );
    // YAML is a superset of JSON.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: asRules }] }));
    const { stdout } = await run('promtool', ['check', 'rules', file]);
    expect(stdout).toContain(`SUCCESS: ${asRules.length} rules found`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
