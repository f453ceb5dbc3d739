import { floor, thisLibrary, VARIANTS } from './subjects/index.mjs';
import { short } from './table.mjs';

const PANELS = [
  { row: 'one caller', title: 'One caller: µs for a locked call' },
  { row: 'new keys', title: '64 callers, each its own keys: calls a second' },
  { row: 'hot loop', title: '64 callers, all one key: calls a second' },
  { row: 'fleet', title: '200 callers, one key, 5 ms each: ms' },
  { row: 'hand-over', title: 'From a release to the process that waits: ms' },
  { row: 'transfers', title: '400 transfers between four wallets: ms' },
  { row: 'stores pair', title: 'One caller on each store: µs' },
  { row: 'stores hot', title: '64 callers, one key, each store: calls a second' },
];
const COLUMNS = 2;
const MORE_IS_BETTER = 'pairs/s';
const [PANEL_WIDTH, BAR_HEIGHT, TITLE_HEIGHT, GAP] = [430, 20, 24, 16];
const [NAME_WIDTH, VALUE_WIDTH] = [160, 90];
const MOST_BARS = 4;
const BY_HAND = 'the least, by hand';
// Each is readable on white and on black.
const [TEXT, OURS, FLOOR, PEER] = ['#808890', '#2f81f7', '#808890', '#c08457'];
const COLOURS = { [thisLibrary.name]: OURS, [floor.name]: FLOOR };

/**
 * Bars of the main figures: this library, the floor, and the best peers; then its stores, each beside the floor there.
 */
export function chart(lines) {
  const panels = PANELS.map(({ row, title }) => ({ title, bars: row.startsWith('stores ') ? storeBars(row, lines) : barsOf(row, lines) }));
  const placed = [];
  let y = GAP;
  for (let first = 0; first < panels.length; first += COLUMNS) {
    const side = panels.slice(first, first + COLUMNS);
    placed.push(...side.map((one, column) => `<g transform="translate(${column * (PANEL_WIDTH + GAP)} ${y})">\n${panel(one)}\n</g>`));
    y += TITLE_HEIGHT + Math.max(...side.map(({ bars }) => bars.length)) * BAR_HEIGHT + GAP;
  }
  const [width, height] = [COLUMNS * PANEL_WIDTH + GAP, y];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="${TEXT}">
${placed.join('\n')}
</svg>
`;
}

function panel({ title, bars }) {
  const { unit } = bars[0];
  const values = bars.map(({ value }) => value);
  const isLog = Math.max(...values) > 100 * Math.min(...values);
  const length = isLog ? logLength(values) : (value) => value / Math.max(...values);
  const direction = unit === MORE_IS_BETTER ? 'more is better' : 'less is better';
  const caption = `${title}, ${direction}${isLog ? ', log' : ''}`;
  return [`<text y="12" font-weight="bold">${caption}</text>`, ...bars.map((bar, index) => drawn(bar, index, length))].join('\n');
}

function barsOf(row, all) {
  const lines = all.filter((line) => line.row === row);
  const sign = lines[0].unit === MORE_IS_BETTER ? -1 : 1;
  const first = [thisLibrary, floor].map(({ name }) => lines.find((line) => line.subject === name)).filter(Boolean);
  const own = new Set([...VARIANTS, thisLibrary, floor].map(({ name }) => name));
  const peers = lines.filter(({ subject }) => !own.has(subject));
  return [...first, ...peers.toSorted((a, b) => sign * (a.value - b.value))]
    .slice(0, MOST_BARS)
    .map((bar) => Object.assign({ name: bar.subject === floor.name ? BY_HAND : bar.subject, colour: COLOURS[bar.subject] ?? PEER }, bar));
}

function storeBars(row, lines) {
  return lines
    .filter((line) => line.row === row)
    .flatMap((line) => {
      const hand = lines.find((other) => other.row === `${row} floor` && other.subject === line.subject);
      return [{ ...line, name: line.subject, colour: OURS }, hand && { ...hand, name: BY_HAND, colour: FLOOR }].filter(Boolean);
    });
}

/** The shortest bar still has a tenth of the width. */
function logLength(values) {
  const [low, high] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
  return (value) => 0.1 + (0.9 * (Math.log(value) - low)) / (high - low);
}

function drawn({ name, colour, value }, index, length) {
  const y = TITLE_HEIGHT + index * BAR_HEIGHT;
  const width = Math.max(1, length(value) * (PANEL_WIDTH - NAME_WIDTH - VALUE_WIDTH)).toFixed(0);
  return (
    `<text x="${NAME_WIDTH - 8}" y="${y + 12}" text-anchor="end">${name}</text>` +
    `<rect x="${NAME_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT - 5}" rx="2" fill="${colour}"/>` +
    `<text x="${NAME_WIDTH + Number(width) + 6}" y="${y + 12}">${short(value)}</text>`
  );
}
