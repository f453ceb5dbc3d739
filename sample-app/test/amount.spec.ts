import { describe, expect, it } from '@jest/globals';
import { formatAmount, parseAmount } from '../src/money/amount.js';

describe('an amount', () => {
  it.each([
    ['1', 100n, '1.00'],
    ['12.50', 1250n, '12.50'],
    ['0.01', 1n, '0.01'],
    ['007.00', 700n, '7.00'],
    ['999999999999.99', 99_999_999_999_999n, '999999999999.99'],
  ])('%s is read and written exactly', (text, hundredths, written) => {
    expect(parseAmount(text)).toBe(hundredths);
    expect(formatAmount(hundredths)).toBe(written);
  });

  it.each(['', '0', '0.00', '00', '-1', '+1', '1.', '.5', '1.5', '1.505', '1e2', '１', '1_000', '1\n', 'NaN'])('%j is refused', (text) => {
    expect(() => parseAmount(text)).toThrow(TypeError);
  });
});
