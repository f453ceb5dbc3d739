import { LockConfigurationError } from '../../../lib/core/words/errors.js';
import { printable } from '../../../lib/core/words/shown.js';
import type { CommandLine } from '../command-line.js';
import { makePlace } from '../contract/make-place.js';
import type { Place } from '../contract/place.js';
import type { Verdict } from '../contract/rules.js';
import { Run } from '../contract/run.js';
import { examine } from '../contract/server.js';
import type { Finding } from '../doctor/finding.js';
import { hintOf } from '../hints.js';
import { print, printJson, tell } from '../output.js';
import { WrongUse } from '../wrong-use.js';

/** Subjects that may fail without making the rules pointless. */
const BEARABLE = /(^messages|: eviction)$/;

/**
 * Checks the rules of a store on the servers of the user, in a place of its own; 1 where a rule fails, or nothing could
 * be checked.
 */
export async function contract(line: CommandLine): Promise<number> {
  const { address, json } = line;
  const place = await placeOf(line);
  const run = new Run(place);
  let findings: readonly Finding[] = [];
  const verdicts: Verdict[] = [];
  let left: string | undefined;
  try {
    const server = await examine(place, address);
    findings = server.findings.map((finding) => ({ ...finding, text: `${finding.text}${hintOf(finding.text, address)}` }));
    if (!json) {
      print(...findings.map(({ level, subject, text }) => printable(`${level.padEnd(4)}  ${subject}: ${text}`)));
    }
    const isPointless = findings.some(({ level, subject }) => level === 'FAIL' && !BEARABLE.test(subject));
    for await (const verdict of isPointless ? [] : run.verdicts(server, address)) {
      verdicts.push(verdict);
      if (!json) {
        const { level, group, name, text } = verdict;
        print(printable(`${level.padEnd(4)}  ${group}: ${name}${text === undefined ? '' : `: ${text}`}`));
      }
    }
  } finally {
    left = await run.end();
  }
  const isKept = !run.isStopped && left === undefined && ![...findings, ...verdicts].some(({ level }) => level === 'FAIL');
  if (json) {
    printJson({ ok: isKept, interrupted: run.isStopped, servers: findings, rules: verdicts, left: left ?? null });
  } else {
    print(printable(summaryOf(verdicts, isKept)));
  }
  if (run.isStopped) {
    tell('It was interrupted: the rules that are missing were not checked.');
  }
  if (left !== undefined) {
    tell(left);
  }
  return isKept ? 0 : 1;
}

function summaryOf(verdicts: readonly Verdict[], isKept: boolean): string {
  if (verdicts.length === 0) {
    return 'No rule was checked. Change what fails, and run it again.';
  }
  const [held, failed, skipped] = (['ok', 'FAIL', 'skip'] as const).map(
    (level) => verdicts.filter((verdict) => verdict.level === level).length,
  );
  const next = isKept
    ? 'The servers will do.'
    : 'Change what fails, and run it again. A rule that does not say what to change: the server differs from those that are tested.';
  return `${held} rules hold, ${failed} fail, ${skipped} were skipped. ${next}`;
}

/** Throws `WrongUse` for an address that cannot be. */
async function placeOf({ address, prefix }: CommandLine): Promise<Place> {
  try {
    return await makePlace(address, prefix);
  } catch (error) {
    throw error instanceof LockConfigurationError ? new WrongUse(error.detail, { cause: error }) : error;
  }
}
