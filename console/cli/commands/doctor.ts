import { printable } from '../../../lib/core/words/shown.js';
import type { CommandLine } from '../command-line.js';
import { failure, fails, warning, type Finding } from '../doctor/finding.js';
import { healthFindings } from '../doctor/health-findings.js';
import { hintOf } from '../hints.js';
import { print, printJson } from '../output.js';
import type { Session } from '../session.js';

/** Checks the servers of the locks, one line for each thing; 1 where one of them fails. */
export async function doctor(session: Session, line: CommandLine): Promise<number> {
  const servers = await session.findings();
  const found = [...servers, ...(await storeFindings(session, servers))];
  const findings = found.map(({ level, subject, text }) => ({
    level,
    subject,
    text: level === 'FAIL' ? `${text}${hintOf(text, line.address)}` : text,
  }));
  if (line.json) {
    printJson(findings);
  } else {
    print(...findings.map(({ level, subject, text }) => printable(`${level.padEnd(4)}  ${subject}: ${text}`)));
  }
  return fails(findings) ? 1 : 0;
}

/** Of the store as the application would use it, besides what is known already. */
async function storeFindings(session: Session, known: readonly Finding[]): Promise<Finding[]> {
  const warnings = new Set<string>();
  const findings: Finding[] = [];
  try {
    await session.open((message) => warnings.add(message));
    // It says why it does not answer: an outage, or a right that is missing. The health does not.
    await session.store.health?.();
    findings.push(...(await healthFindings(() => session.locks.health(0))));
  } catch (error) {
    findings.push(failure('store', error));
  }
  const news = [...warnings].filter((message) => !known.some(({ text }) => message.includes(text)));
  return [...news.map((message) => warning('store', message)), ...findings];
}
