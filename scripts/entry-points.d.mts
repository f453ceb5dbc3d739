export const ENTRY_POINTS: Readonly<Record<string, string>>;
export const SOURCES: Readonly<Record<string, string>>;
export function exportsOf(entries: Readonly<Record<string, string>>): Readonly<Record<string, unknown>>;
export function typesVersionsOf(entries: Readonly<Record<string, string>>): Readonly<Record<string, unknown>>;
export function pathsOf(sources: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>>;
