import { createHash } from 'node:crypto';
import { APP_FILES } from './app-files.js';

/** A file of the front end, as it is sent. */
export interface PageFile {
  readonly type: string;
  readonly text: string;
  readonly etag: string;
}

const TYPES = { 'app.js': 'text/javascript; charset=utf-8', 'app.css': 'text/css; charset=utf-8' } as const;

export function pageFile(name: keyof typeof TYPES): PageFile {
  const text = APP_FILES[name];
  return { type: TYPES[name], text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
}
