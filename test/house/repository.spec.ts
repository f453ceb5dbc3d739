import { spawnSync } from 'node:child_process';
import { accessSync, constants, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { ENTRY_POINTS, exportsOf, pathsOf, SOURCES, typesVersionsOf } from '../../scripts/entry-points.mjs';
import { PAGES } from '../readme/pages';

const WORKFLOWS = '.github/workflows';
const FORMS = '.github/ISSUE_TEMPLATE';

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  version: string;
  scripts: Record<string, string>;
  exports: unknown;
  typesVersions: unknown;
};

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps?: readonly { readonly run?: string }[] }>>;
}

const commands = readdirSync(WORKFLOWS).flatMap((name) => {
  const { jobs } = parse(readFileSync(join(WORKFLOWS, name), 'utf8')) as Workflow;
  return Object.values(jobs).flatMap(({ steps = [] }) => steps.flatMap(({ run }) => (run === undefined ? [] : [[name, run] as const])));
});

test.each(commands)('%s runs what is there: %s', (_name, command) => {
  const script = /^npm run ([\w:-]+)( -- .+)?$/.exec(command)?.[1];
  if (script !== undefined) {
    expect(Object.keys(manifest.scripts)).toContain(script);
  } else if (!/^npm (ci|publish( --[\w-]+| public)*)$/.test(command)) {
    expect(command).toBe('.ci/run');
    accessSync(command, constants.X_OK);
  }
});

test('the workflows run the tests, the contract and a release', () => {
  expect(commands.map(([, command]) => command)).toEqual(
    expect.arrayContaining(['.ci/run', expect.stringMatching(/^npm run contract /), expect.stringMatching(/^npm publish --provenance/)]),
  );
});

test('the entry points are those of the one list: `npm run exports` writes them', () => {
  const { compilerOptions } = JSON.parse(readFileSync('test/tsconfig.json', 'utf8')) as { compilerOptions: { paths: unknown } };
  expect(manifest.exports).toEqual(exportsOf(ENTRY_POINTS));
  expect(manifest.typesVersions).toEqual(typesVersionsOf(ENTRY_POINTS));
  expect(compilerOptions.paths).toEqual(pathsOf(SOURCES));
});

/** The script of package.json, in a folder that has the files. */
function runIn(
  files: Readonly<Record<string, string>>,
  script: string,
  env: NodeJS.ProcessEnv = {},
): { status: number | null; said: string } {
  const folder = mkdtempSync(join(tmpdir(), 'lock-repository-'));
  try {
    mkdirSync(join(folder, WORKFLOWS), { recursive: true });
    cpSync('scripts', join(folder, 'scripts'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, type: 'module' }));
    for (const [path, text] of Object.entries(files)) {
      writeFileSync(join(folder, path), text);
    }
    spawnSync('ln', ['-s', resolve('node_modules'), join(folder, 'node_modules')]);
    const [, file = ''] = (manifest.scripts[script] ?? '').split(' ');
    const { status, stderr } = spawnSync(process.execPath, [file], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, ...env },
    });
    return { status, said: stderr };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('the linter refuses a workflow that names what is not there, also after one that is right', () => {
  const right = readFileSync(join(WORKFLOWS, 'ci.yml'), 'utf8');
  const { status, said } = runIn(
    { [`${WORKFLOWS}/a.yml`]: right, [`${WORKFLOWS}/b.yml`]: right.replace('matrix.node', 'matrix.knot') },
    'workflows',
  );
  expect(status).toBe(1);
  expect(said).toMatch(/^\S*b\.yml:\d+:\d+: property "knot" is not defined/);
  expect(said).not.toContain('a.yml');
});

const ADDRESSES = { repository: 'x', homepage: 'x', bugs: 'x' };

test('a release needs its tag, its heading in the changelog, and the addresses of the repository', () => {
  const changelog = `# Changelog\n\n## ${manifest.version}\n`;
  const ready = { 'package.json': JSON.stringify({ ...manifest, ...ADDRESSES }), 'CHANGELOG.md': changelog };
  expect(runIn(ready, 'release-check', { GITHUB_REF_NAME: `v${manifest.version}` })).toEqual({ status: 0, said: '' });
  const { status, said } = runIn({ 'CHANGELOG.md': '# Changelog\n' }, 'release-check', { GITHUB_REF_NAME: 'v9' });
  expect(status).toBe(1);
  expect(said.trim().split('\n')).toEqual([
    ...Object.keys(ADDRESSES)
      .filter((field) => !(field in manifest))
      .map((field) => expect.stringContaining(`no "${field}"`)),
    expect.stringContaining('The tag is v9'),
    expect.stringContaining(`no heading "## ${manifest.version}"`),
  ]);
});

/** The rules of GitHub for a form: what is missing or wrong makes it a blank issue there, without a word. */
interface Form {
  readonly name: string;
  readonly description: string;
  readonly labels: readonly string[];
  readonly body: readonly {
    readonly type: string;
    readonly id?: string;
    readonly attributes: Readonly<Record<string, string>>;
    readonly validations?: { readonly required: boolean };
  }[];
}

const ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  markdown: ['value'],
  textarea: ['label', 'description', 'placeholder', 'value', 'render'],
  input: ['label', 'description', 'placeholder', 'value'],
};

const forms = readdirSync(FORMS).filter((name) => name !== 'config.yml');

test('there is a form for each kind of issue', () => {
  expect(forms).toEqual(['bug.yml', 'feature.yml', 'question.yml']);
  expect(parse(readFileSync(join(FORMS, 'config.yml'), 'utf8'))).toEqual({ blank_issues_enabled: false });
});

test.each(forms)('%s has what GitHub asks of a form, and asks for the output of the doctor', (name) => {
  const { body, ...head } = parse(readFileSync(join(FORMS, name), 'utf8')) as Form;
  expect(head).toEqual({ name: expect.stringMatching(/\S{3}/), description: expect.stringMatching(/\S{3}/), labels: [expect.any(String)] });
  const fields = body.filter(({ type }) => type !== 'markdown');
  expect(new Set(fields.map(({ id }) => id)).size).toBe(fields.length);
  expect(new Set(fields.map(({ attributes }) => attributes['label'])).size).toBe(fields.length);
  for (const { type, id, attributes, validations, ...others } of body) {
    expect(others).toEqual({});
    expect(ATTRIBUTES[type]).toEqual(expect.arrayContaining(Object.keys(attributes)));
    expect(attributes[type === 'markdown' ? 'value' : 'label']).toEqual(expect.any(String));
    expect(type === 'markdown' ? [id] : [typeof id, typeof (validations?.required ?? true)]).toEqual(
      type === 'markdown' ? [undefined] : ['string', 'boolean'],
    );
  }
  expect(fields.map(({ attributes }) => attributes['description'] ?? '').join()).toContain('npx nestjs-distributed-lock doctor');
});

test('no page but package.json has an address of the repository', () => {
  const pages = [...PAGES.map(({ path }) => path), '.github/pull_request_template.md', ...forms.map((form) => join(FORMS, form))];
  const own = pages.filter((path) => /github\.com\/[\w-]+\/nestjs-distributed-lock/.test(readFileSync(path, 'utf8')));
  expect(own).toEqual([]);
});
