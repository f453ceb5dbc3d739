import { readFileSync } from 'node:fs';

/**
 * The front end as the build makes it. This file is for tests, which run from the sources. The build replaces it by a
 * file that contains the texts, so that they are there in both formats of the package, and in an application that is
 * bundled.
 */
export const APP_FILES: Readonly<Record<'app.js' | 'app.css', string>> = {
  'app.js': readFileSync('dist/page/app.js', 'utf8'),
  'app.css': readFileSync('dist/page/app.css', 'utf8'),
};
