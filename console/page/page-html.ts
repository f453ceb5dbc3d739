/** Nothing inline, nothing from elsewhere, and no frame of a stranger around it. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/**
 * The page at a URL. Its files are below the page, whatever a proxy has put in front of the path or cut off: the
 * reference is relative, and has the last part of the path unless the path ends with a slash.
 */
export function pageHtml(url: string): string {
  const path = url.split(/[?#]/, 1)[0] as string;
  const last = path.slice(path.lastIndexOf('/') + 1);
  const folder = last === '' ? '.' : `./${escapeHtml(last)}`;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <meta name="robots" content="noindex" />
    <title>Locks</title>
    <link rel="icon" href="${folder}/icon.svg" />
    <link rel="stylesheet" href="${folder}/app.css" />
    <script type="module" src="${folder}/app.js"></script>
  </head>
  <body>
    <div id="app"></div>
    <noscript>This page needs JavaScript.</noscript>
  </body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
