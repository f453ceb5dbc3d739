// Says what is missing before a release can be published.
import { readFileSync } from 'node:fs';

const { version, ...named } = JSON.parse(readFileSync('package.json', 'utf8'));
const tag = process.env.GITHUB_REF_NAME;

const wrong = [
  ...['repository', 'homepage', 'bugs']
    .filter((field) => !named[field])
    .map((field) => `package.json has no "${field}". Fill it in: no other file has the address of the repository.`),
  tag === `v${version}` ? '' : `The tag is ${tag}, and package.json has the version ${version}. Tag the release v${version}.`,
  readFileSync('CHANGELOG.md', 'utf8').includes(`\n## ${version}\n`)
    ? ''
    : `CHANGELOG.md has no heading "## ${version}". Put what is unreleased under it.`,
].filter(Boolean);

wrong.forEach((text) => console.error(text));
process.exitCode = wrong.length > 0 ? 1 : 0;
