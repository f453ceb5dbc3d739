import { PROBE } from '../../../lib/operate/peers/probe-message';
import { shaped } from '../../../lib/operate/peers/shape';

const step = { process: 'p', site: 's', wait: 'w', waitsFor: 'a', waitedMs: 1, holds: 'b', fence: 1, heldMs: 1 };
const probe = { kind: 'probe', id: 'i', lap: 1, origin: 'o', key: 'k', fence: 1, path: [], cycle: [] };

test.each(['path', 'cycle'])('PROBE takes a %s of 16 steps, and drops a longer one', (list) => {
  const steps = (count: number): unknown => JSON.parse(JSON.stringify({ ...probe, [list]: Array.from({ length: count }, () => step) }));
  expect(shaped(steps(16), PROBE)).toEqual(steps(16));
  expect(shaped(steps(17), PROBE)).toBeUndefined();
});
