import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { MemoryLockStore } from 'nestjs-distributed-lock';
import { cli } from '../support/cli';
import { PrometheusServer } from '../support/prometheus-server';
import { until } from '../support/until';
import { listed, pageWords, rowsOf, type Row } from './fault-table';
import { FaultyApplication, LINES, type PageNotice } from './faulty-application';
import type { Faults, World } from './faults/fault';

/** Many servers share two processors with the tests. */
const PATIENCE_MS = 300_000;
const LOOK_MS = 250;
/** The rules of the docs, which fire after this time: how long each waits is proved by promtool. */
const SOON = 'for: 3s';
/** For how long a line is late, in milliseconds. */
const LATE_MS = 10_000;
/**
 * How long the servers are asked to cancel statements that were on their way when the application closed. pg looks for
 * a module of Node then, which a suite that has ended does not give.
 */
const CANCELLING_MS = 3_000;
const WORDS = pageWords();

/** The alert that calls fire besides where they fail. */
const OF_CALLS = 'RefusedByStore';

const nameOf = (store: string, fault: string): string => `${store}, ${fault}`;

const worlds = new Map<string, World>();
let folder: string;
let application: FaultyApplication;
/** Another one, whose calls contend for the same locks. */
let other: FaultyApplication;
/** How many lines the log had before the faults. */
let quietLines = 0;
let prometheus: PrometheusServer;

/**
 * Causes each fault of a store on servers of its own, and compares the observations with the row of the docs. `store`
 * is the heading of its table.
 */
export function describeFaults(store: string, faults: Faults): void {
  const rows = rowsOf(store);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lock-faults-'));
    for (const [fault, start] of Object.entries(faults)) {
      worlds.set(nameOf(store, fault), await start());
    }
    const start = (): Promise<FaultyApplication> =>
      FaultyApplication.start({
        ...Object.fromEntries([...worlds].map(([name, { connect }]) => [name, connect()])),
        default: new MemoryLockStore(),
      });
    application = await start();
    other = await start();
    const rules = join(folder, 'alerts.yml');
    writeFileSync(rules, readFileSync('docs/operations/alerts.yml', 'utf8').replaceAll(/\bfor: \w+/g, SOON));
    prometheus = await PrometheusServer.start(application.port, rules, '3s');
    await Promise.all([...worlds.keys()].map((name) => until(`that ${name} is up`, () => isUp(name), PATIENCE_MS)));
    for (const name of worlds.keys()) {
      application.callOn(name);
      other.callOn(name);
    }
    await Promise.all([...worlds.keys()].map((name) => until(`calls of ${name}`, () => outcomeOf(name) === 'ok', PATIENCE_MS)));
    quietLines = LINES.length;
    await Promise.all([...worlds.values()].map((world) => world.strike()));
  }, PATIENCE_MS);
  afterAll(async () => {
    await prometheus.stop();
    await Promise.all([application.close(), other.close()]);
    await Promise.all([...worlds.values()].map((world) => world.stop()));
    await sleep(CANCELLING_MS);
    rmSync(folder, { recursive: true });
  }, PATIENCE_MS);

  test('the docs have the faults that are caused here', () => {
    expect([...rows.keys()]).toEqual(Object.keys(faults));
  });

  test.each(Object.keys(faults))(
    `${store}, %s: calls, health, log, page, metrics, alerts and doctor say what the docs say`,
    async (fault) => {
      const name = nameOf(store, fault);
      const written = rows.get(fault);
      let seen: Seen | undefined;
      await until(
        'what the docs say',
        async () => {
          seen = await seenOf(name, written);
          const row = { ...seen.row, doctor: written?.doctor };
          const isSeen =
            isDeepStrictEqual(row, written) && isDeepStrictEqual([seen.page, seen.zeros], [seen.expectedPage, seen.expectedZeros]);
          // Each look surveys all stores.
          return isSeen || (await sleep(LOOK_MS, false));
        },
        PATIENCE_MS / 2,
      ).catch((error: Error) => console.warn(`${name}: ${error.message}: ${JSON.stringify({ written, seen })}`));
      // The comparison says what is missing.
      expect({ ...seen?.row, doctor: await doctorOf(name, written?.doctor) }).toEqual(written);
      expect(seen?.page).toEqual(seen?.expectedPage);
      expect(seen?.zeros).toEqual(seen?.expectedZeros);
    },
    PATIENCE_MS,
  );

  test(
    'calls that fail meanwhile fire LockRefusedByStore',
    async () => {
      const isDown = (fault: string): boolean => rows.get(fault)?.health.startsWith('down') === true;
      const failing = Object.keys(faults)
        .filter(isDown)
        .map((fault) => nameOf(store, fault));
      let fired: string[] = [];
      await until(
        'the alerts',
        async () => {
          const alerts = await prometheus.query('ALERTS{alertname="LockRefusedByStore",alertstate="firing"}');
          fired = alerts.map(({ metric }) => metric['distributed_lock_store'] as string).toSorted();
          return fired.join(';') === failing.toSorted().join(';');
        },
        PATIENCE_MS / 2,
      ).catch((error: Error) => console.warn(error.message));
      expect(fired).toEqual(failing.toSorted());
    },
    PATIENCE_MS,
  );
}

interface Seen {
  readonly row: Omit<Row, 'doctor'>;
  readonly page: PageNotice;
  /** The notice of the page by the docs, for the health that was seen. */
  readonly expectedPage: PageNotice;
  readonly zeros: readonly string[];
  readonly expectedZeros: readonly string[];
}

/** The states that are 0, by the rules of the page. */
function zerosBy(name: string, status: string, reasons: readonly string[]): readonly string[] {
  const isQuorum = name.startsWith('A quorum');
  return [
    ...(status === 'down' ? ['up'] : []),
    ...(reasons.includes('polls') ? ['hearing'] : []),
    ...(isQuorum && status !== 'up' ? ['voting'] : []),
  ];
}

async function seenOf(name: string, written: Row | undefined): Promise<Seen> {
  const page = await application.page(name);
  const { status, reasons } = await application.health(name);
  const alerts = await prometheus.query(`ALERTS{alertstate="firing",distributed_lock_store="${name}"}`);
  return {
    row: {
      calls: outcomeOf(name),
      health: healthOf(status, reasons[0], written?.health),
      log: logOf(name, written?.log),
      alerts: listed(
        [...new Set(alerts.map(({ metric }) => (metric['alertname'] as string).slice('Lock'.length)))]
          .filter((alert) => alert !== OF_CALLS)
          .toSorted(),
      ),
    },
    page,
    zeros: await application.zeros(name),
    expectedZeros: zerosBy(name, status, reasons),
    expectedPage: {
      condition: status,
      said: Object.fromEntries(reasons.map((reason) => [reason, WORDS.get(reason) ?? 'not in the docs'])),
    },
  };
}

/** The outcome of the last calls, in both applications. */
function outcomeOf(name: string): string {
  return [...new Set([application.outcome(name), other.outcome(name)])].join(' or ');
}

/** The status and the reason; the cell of the docs, where the reason is one of several there. */
function healthOf(status: string, reason: string | undefined, written = ''): string {
  const [writtenStatus, reasons = ''] = written.split(': ');
  const isWritten = status === writtenStatus && reason !== undefined && reasons.split(', ').includes(reason);
  return isWritten ? written : [status, reason].filter(Boolean).join(': ');
}

/** The words of the docs, where a line has them; else the last lines: a machine that stood still causes a line. */
function logOf(name: string, written: string | undefined): string {
  const servers = Object.values(worlds.get(name)?.address ?? {}).flatMap((url) => url?.match(/127\.0\.0\.1:\d+/g) ?? []);
  const lines = LINES.slice(quietLines).filter(({ text }) =>
    [`'${name}'`, ...servers.map((server) => `(${server})`)].some((its) => text.includes(its)),
  );
  const late = lines.filter(({ at }) => performance.now() - at < LATE_MS);
  return lines.some(({ text }) => written !== undefined && text.includes(written))
    ? (written as string)
    : listed(late.map(({ text }) => text));
}

async function isUp(name: string): Promise<boolean> {
  return (await application.health(name)).status === 'up';
}

/**
 * The first failure that the doctor finds, as a cell has it; asked again where a machine that stalls may be the reason
 * for another failure.
 */
async function doctorOf(name: string, expected: string | undefined): Promise<string> {
  const address = worlds.get(name)?.address;
  if (!address) {
    return 'cannot be asked';
  }
  let seen = '';
  for (let tries = 0; tries < 3 && seen !== expected; tries++) {
    const { out } = await cli(address, ['doctor', '--json']);
    const findings = JSON.parse(out) as { readonly level: string; readonly subject: string }[];
    const [first] = [...findings.filter(({ level }) => level === 'FAIL'), ...findings.filter(({ level }) => level === 'warn')];
    seen = listed(first ? [`${first.level} ${first.subject.replace(/ \d of \d/, '').replace(/^server: /, '')}`] : []);
  }
  return seen;
}
