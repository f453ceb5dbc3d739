import { parseArgs } from 'node:util';
import { QUICK_ROWS, ROWS } from './rows/index.mjs';

const USAGE = `npm run bench -- [--quick] [--json] [--write] [--rows ${ROWS.map(({ name }) => name).join(',')}]`;

/** The options of the command line; ends the process where they cannot be understood. */
export function readOptions() {
  try {
    const { values } = parseArgs({
      options: { quick: { type: 'boolean' }, json: { type: 'boolean' }, write: { type: 'boolean' }, rows: { type: 'string' } },
    });
    const { quick = false, json = false, write = false } = values;
    const selected = values.rows?.split(',').map(rowNamed);
    const isWhole = !quick && !selected;
    return { quick, json, isWhole, writes: isWhole || (write && !quick), rows: selected ?? (quick ? QUICK_ROWS : ROWS) };
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    process.exit(2);
  }
}

function rowNamed(name) {
  const row = ROWS.find((one) => one.name === name);
  if (!row) {
    throw new Error(`There is no row '${name}'.`);
  }
  return row;
}
