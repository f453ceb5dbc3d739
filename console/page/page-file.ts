import { createHash } from 'node:crypto';
import { APP_FILES } from './app-files.js';

/** A file of the front end, as it is sent. */
export interface PageFile {
  readonly type: string;
  readonly text: string;
  readonly etag: string;
}

const TYPES = {
  'app.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#2f5bd7" stroke-width="2"><rect x="4" y="10.5" width="16" height="10.5" rx="2.5"/><path d="M8 10.5V7a4 4 0 0 1 8 0v3.5"/></svg>';

export function pageFile(name: keyof typeof TYPES): PageFile {
  const text = name === 'icon.svg' ? ICON : APP_FILES[name];
  return { type: TYPES[name], text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
}
