import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run, type Output } from './run.js';

const FIXTURES = 'test/package/fixtures';
/** Long enough for a machine whose npm cache is empty. */
export const INSTALL_MS = 480_000;
const PACKAGE = 'node_modules/nestjs-distributed-lock';
/** The packages that Nest loads only where an application uses them. */
const OPTIONAL_PACKAGES = [
  '@nestjs/microservices',
  '@nestjs/websockets',
  'class-validator',
  'class-transformer',
  '@fastify/multipart',
  '@fastify/static',
  '@fastify/view',
];

/** Whether Node takes a folder's `.js` files for ES modules. */
export type ModuleType = 'module' | 'commonjs';

/** The tarball of this package, in a temporary folder in which consumers are made. */
export class Workshop {
  readonly folder = mkdtempSync(join(tmpdir(), 'lock-matrix-'));

  /** Packs `dist/` as it is. */
  async pack(): Promise<void> {
    if (!existsSync('dist/esm/index.js') || !existsSync('dist/cjs/index.js')) {
      throw new Error('There is no build in dist/ to pack: run `npm run build` first, as `npm test` does.');
    }
    const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', this.folder], { cwd: '.' });
    renameSync(join(this.folder, stdout.trim()), join(this.folder, 'package.tgz'));
  }

  /**
   * A project that has installed the tarball, made of a fixture, of the files that all fixtures share, and of folders
   * to copy into others.
   */
  async consumer(
    fixture: string,
    env: Readonly<Record<string, string>> = {},
    copies: Readonly<Record<string, string>> = {},
  ): Promise<Consumer> {
    const folder = join(this.folder, fixture);
    cpSync(join(FIXTURES, fixture), folder, { recursive: true });
    cpSync(join(FIXTURES, 'app'), join(folder, 'src'), { recursive: true });
    for (const shared of ['types', 'scripts', 'bundle']) {
      cpSync(join(FIXTURES, shared), join(folder, shared), { recursive: true });
    }
    for (const [from, to] of Object.entries(copies)) {
      cpSync(from, join(folder, to), { recursive: true });
    }
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'], {
      cwd: folder,
      timeout: INSTALL_MS,
    });
    return new Consumer(folder, env);
  }

  clear(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A project that depends on the packed package. */
export class Consumer {
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#env = env;
  }

  /** The version of an installed package. */
  version(name: string): string {
    const manifest = JSON.parse(readFileSync(join(this.folder, 'node_modules', name, 'package.json'), 'utf8')) as { version: string };
    return manifest.version;
  }

  /** Runs Node in the project. */
  node(...args: readonly string[]): Promise<Output> {
    return run(process.execPath, args, { cwd: this.folder, env: this.#env });
  }

  /** Runs node with a command that has to fail. */
  failingNode(...args: readonly string[]): Promise<Output> {
    return run(process.execPath, args, { cwd: this.folder, env: this.#env, fails: true });
  }

  /**
   * Compiles everything with `tsconfig.<resolution>.json` to `out/<resolution>`, as modules of that type. Gives the
   * errors, without the lines that explain them: there has to be one error at least, since one of the files must not
   * compile.
   */
  async compile(resolution: string, type: ModuleType): Promise<string[]> {
    const { stdout } = await this.failingNode('node_modules/typescript/bin/tsc', '--pretty', 'false', '-p', `tsconfig.${resolution}.json`);
    writeFileSync(join(this.folder, 'out', resolution, 'package.json'), JSON.stringify({ type }));
    return stdout.split('\n').filter((line) => /^\S/.test(line));
  }

  /** Bundles a file with esbuild, minified, into a folder without any `node_modules`; gives the path of the bundle. */
  async bundle(entry: string, type: ModuleType): Promise<string> {
    const [format, extension] = type === 'module' ? ['esm', 'mjs'] : ['cjs', 'cjs'];
    const outfile = join(this.folder, '..', 'bundles', `${entry.replaceAll(/\W/g, '-')}.${extension}`);
    // An ES module has no `require`, which bundled CommonJS packages call for what comes with Node.
    const require = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
    await this.node(
      'node_modules/esbuild/bin/esbuild',
      entry,
      '--bundle',
      '--minify',
      '--platform=node',
      `--format=${format}`,
      `--outfile=${outfile}`,
      '--tsconfig=tsconfig.json',
      '--log-level=warning',
      ...OPTIONAL_PACKAGES.map((name) => `--external:${name}`),
      ...(type === 'module' ? [`--banner:js=${require}`] : []),
    );
    return outfile;
  }

  /** Installs the package a second time, in `scripts/second/`. */
  addSecondCopy(): void {
    const second = join(this.folder, 'scripts/second');
    mkdirSync(second, { recursive: true });
    cpSync(join(this.folder, PACKAGE), join(second, PACKAGE), { recursive: true });
    writeFileSync(join(second, 'index.mjs'), "import 'nestjs-distributed-lock';\n");
  }
}
