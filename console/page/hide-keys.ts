import { brief } from '../../lib/operate/peers/shape.js';
import type { Survey } from '../../lib/operate/peers/survey.js';
import { showWhole, shownHolder, type ShowKey } from './shown-key.js';

/**
 * A survey with every key as the page shows it; where keys are hidden, nothing is in it that may name one, or a person.
 */
export function withKeys<S extends Survey>(survey: S, show: ShowKey): S {
  if (show === showWhole) {
    return survey;
  }
  // A leader without a name is called by its key, and names are cut.
  const renamed = <T extends { readonly key: string; readonly name?: string; readonly description?: string | undefined }>(row: T): T => ({
    ...row,
    key: show(row.key),
    ...(row.name === brief(row.key) && { name: show(row.key) }),
    description: undefined,
  });
  return {
    ...survey,
    held: survey.held.map(renamed),
    waiting: survey.waiting.map((call) => ({ ...renamed(call), holds: call.holds.map(renamed) })),
    ended: survey.ended.map(renamed),
    incidents: survey.incidents.map((incident) => ({
      ...renamed(incident),
      // An outage is about no key.
      key: incident.key && show(incident.key),
      holder: incident.holder && shownHolder(incident.holder, show),
      // A driver may say with which command, and so for which key.
      error: undefined,
      calls: incident.calls?.map((call) => ({ ...call, holds: show(call.holds), waitsFor: show(call.waitsFor) })),
    })),
  };
}
