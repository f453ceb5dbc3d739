import { OncePerKey } from '../../../lib/core/words/once-per-key';

test('a key is new once, also while many others come, and the oldest of very many is new again', () => {
  const keys = new OncePerKey();
  const many = Array.from({ length: 5_000 }, (_, at) => `k${at}`);
  const unknown = many.filter((key) => keys.isNew(key));
  expect(unknown).toEqual(many);
  expect(many.slice(-100).filter((key) => keys.isNew(key))).toEqual([]);
  expect(keys.isNew('k0')).toBe(true);
});
