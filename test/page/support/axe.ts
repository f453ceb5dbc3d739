import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';

/** The mistakes that axe finds in a page. */
export async function findingsIn(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
