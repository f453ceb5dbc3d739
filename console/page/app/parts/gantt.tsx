import type { VNode } from 'preact';
import { span, timeOfDay } from '../model/format.js';
import { processName } from '../model/processes.js';
import type { StoreState } from '../model/state.js';
import type { Bar, Lane } from '../model/timeline.js';

const WORDS: Readonly<Record<Bar['kind'], string>> = {
  hold: 'held',
  running: 'holds',
  lost: 'lost',
  wait: 'waited',
  waiting: 'waits',
  refused: 'gave up',
  overlap: 'ran beside the next holder',
};

/** A hold is thick in its lane, and the wait before it thin and below. */
const THIN: ReadonlySet<Bar['kind']> = new Set(['wait', 'waiting', 'refused']);

const TICKS = [0, 0.25, 0.5, 0.75, 1] as const;

interface GanttProps {
  readonly store: StoreState;
  readonly lanes: readonly Lane[];
  readonly from: number;
  readonly to: number;
}

/** The holds of a key by process, with the waits before them. */
export function Gantt({ store, lanes, from, to }: GanttProps): VNode {
  return (
    <figure class="gantt">
      <Legend />
      <div class="lane axis" aria-hidden="true">
        <span />
        <div class="ticks">
          {TICKS.map((part) => (
            <span key={part}>{part === 1 ? 'now' : timeOfDay(from + part * (to - from))}</span>
          ))}
        </div>
      </div>
      {lanes.map((lane) => (
        <div class="lane" key={lane.process}>
          <span class="lane-name">{processName(store, lane.process)}</span>
          <svg height="34" role="img" aria-label={`${processName(store, lane.process)}: ${summary(lane)}`}>
            <defs>
              <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                <rect class="hatch-line" width="2.5" height="6" />
              </pattern>
            </defs>
            {TICKS.map((part) => (
              <line key={part} class="grid" x1={`${part * 100}%`} x2={`${part * 100}%`} y1="0" y2="34" />
            ))}
            {lane.bars.map((bar) => (
              <BarShape key={bar.id} bar={bar} from={from} to={to} />
            ))}
          </svg>
        </div>
      ))}
    </figure>
  );
}

function BarShape({ bar, from, to }: { readonly bar: Bar } & Pick<GanttProps, 'from' | 'to'>): VNode {
  const isThin = THIN.has(bar.kind);
  const start = Math.max(bar.from, from);
  const part = (ms: number): string => `${((ms / (to - from)) * 100).toFixed(3)}%`;
  const fence = bar.fence === undefined ? '' : `, fence ${bar.fence}`;
  const reason = bar.reason === undefined ? '' : ` (${bar.reason})`;
  return (
    <rect
      class={`b ${bar.kind}`}
      x={part(start - from)}
      y={isThin ? 25 : 5}
      width={part(Math.max(0, bar.to - start))}
      height={isThin ? 4 : 16}
      rx="2"
    >
      <title>{`${bar.site} ${WORDS[bar.kind]} for ${span(bar.to - bar.from)}${reason}${fence}`}</title>
    </rect>
  );
}

const LEGEND = ['hold', 'running', 'lost', 'overlap', 'wait', 'refused'] as const;

function Legend(): VNode {
  return (
    <figcaption class="legend">
      {LEGEND.map((kind) => (
        <span key={kind}>
          <svg width="18" height="12" aria-hidden="true">
            <rect class={`b ${kind}`} width="18" y={THIN.has(kind) ? 4 : 1} height={THIN.has(kind) ? 4 : 10} rx="2" />
          </svg>
          {WORDS[kind]}
        </span>
      ))}
    </figcaption>
  );
}

function summary({ bars }: Lane): string {
  const count = (...kinds: readonly Bar['kind'][]): number => bars.filter(({ kind }) => kinds.includes(kind)).length;
  return `${count('hold', 'running', 'lost')} holds, ${count('lost')} lost, ${count('wait', 'waiting', 'refused')} waits`;
}
