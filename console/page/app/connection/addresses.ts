/** Beside this script, wherever proxies have put it. */
export function addressOf(name: 'events' | 'survey' | 'search' | 'release' | 'lock'): URL {
  return new URL(`./${name}`, import.meta.url);
}
