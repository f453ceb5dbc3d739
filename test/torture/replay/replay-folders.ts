import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { stop } from 'esbuild';
import { openLibrary } from '../../support/open-table.js';
import { checkHistories } from '../checks/histories.js';
import { OPERATIONS_FILE, readOperations } from '../operations.js';
import { replay } from './replay.js';

/**
 * Replays the histories of folders, and of the folders in them; answers the exit code. A folder without any history
 * proves nothing.
 */
export async function replayFolders(folders: readonly string[]): Promise<number> {
  const library = await openLibrary();
  await stop();
  let code = 0;
  for (const folder of folders.flatMap(historiesIn)) {
    const startedAt = performance.now();
    const history = readOperations(folder);
    if (!history) {
      console.log(`NONE  ${folder}: it has no ${OPERATIONS_FILE}; histories of before have calls only, and not what stores were asked`);
      code ||= 2;
      continue;
    }
    const replays = replay(library, history.operations, history.table);
    const { violations, seen } = checkHistories({ replays, table: history.table });
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    console.log(`${violations.length === 0 ? 'ok  ' : 'LOOK'}  ${folder}: ${seen}; ${violations.length} violations, in ${seconds} s`);
    violations.forEach(({ text }) => console.log(`  ? ${text}`));
    code ||= violations.length === 0 ? 0 : 1;
  }
  return code;
}

/** The folder, or those of it that have a history. */
function historiesIn(folder: string): string[] {
  const inside = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name))
    .filter((other) => readdirSync(other).some((file) => file.endsWith('.jsonl') || file === OPERATIONS_FILE));
  return inside.length > 0 ? inside : [folder];
}
