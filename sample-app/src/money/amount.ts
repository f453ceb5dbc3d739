/** An amount as people write it: digits, and two decimals if any. At most 12 digits before the point, and not zero. */
export const AMOUNT = /^(?!0+(\.00)?$)\d{1,12}(\.\d{2})?$/;

/** The hundredths of a text that matches `AMOUNT`. Never a float: 0.1 + 0.2 is not 0.3. */
export function parseAmount(text: string): bigint {
  if (!AMOUNT.test(text)) {
    throw new TypeError(`"${text}" is no amount. Check it with @IsAmount() where it enters.`);
  }
  const [whole = '', decimals = '00'] = text.split('.');
  return BigInt(whole + decimals);
}

/** Hundredths as text: `1250n` is `'12.50'`. */
export function formatAmount(hundredths: bigint): string {
  const digits = hundredths.toString().padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
