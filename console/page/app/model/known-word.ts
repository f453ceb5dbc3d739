/** Looks up a word that another process says; undefined for a word of a later version. */
export function known<Meaning>(meanings: Readonly<Record<string, Meaning>>, word: string): Meaning | undefined {
  return Object.hasOwn(meanings, word) ? meanings[word] : undefined;
}
