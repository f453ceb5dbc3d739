export const SERVERS: Readonly<Record<string, unknown>>;
export function folderOf(name: string): string;
export function versionOf(name: string): string | undefined;
export function environmentOf(name: string): { TEST_SERVER: string; PATH: string };
