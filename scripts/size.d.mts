export function codeLines(source: string): number;
export function linesOf(file: string): number;
export function readingOrder(): { readonly order: readonly string[]; readonly beside: readonly string[] };
