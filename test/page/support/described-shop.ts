import type { Survey } from '../../../lib/operate/peers/survey';
import { surveyOfShop } from './survey-of-shop';

export const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const TEXT = `trace=${TRACE} span=00f067aa0ba902b7 request=0b8f6c1e-5d0a-4a39-9a55-1f0f3cb2a7d4 tenant=globex-nordics`;

/** The shop, each of whose calls is described by a trace, a span and two fields. */
export function describedShop(): Survey {
  const shop = surveyOfShop();
  const described = <Row extends object>(row: Row): Row => ({ ...row, description: TEXT });
  return {
    ...shop,
    held: shop.held.map(described),
    waiting: shop.waiting.map(described),
    incidents: shop.incidents.map((each) => ({
      ...described(each),
      holder: each.holder && `${each.holder} TransferService.run (${TEXT})`,
    })),
  };
}
