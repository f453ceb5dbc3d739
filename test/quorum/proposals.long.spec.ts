import { Fences } from '../../lib/quorum/votes/fences';

const NOW_MS = 1_700_000_000_000;

test('a fence that was proposed too far ahead of the servers is followed by one of their clocks', () => {
  const fences = new Fences();
  const ahead = fences.next(1, NOW_MS + 3_600_000);
  fences.stored(NOW_MS * 1_000, ahead, 1);
  expect(fences.next(1, NOW_MS + 1)).toBe((NOW_MS + 1) * 1_000);
});

test('fences are above all that servers have stored, and reserved, also where their clocks are behind', () => {
  const fences = new Fences();
  const proposed = fences.next(16, NOW_MS);
  fences.stored(proposed + 100, proposed, 16);
  expect(fences.next(1, NOW_MS - 60_000)).toBe(proposed + 116);
});
