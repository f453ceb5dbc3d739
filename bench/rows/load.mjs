// The cost of a cold start for the library, beside Nest itself, and of one import in a bundle.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { atMost, line } from '../line.mjs';
import { median } from '../numbers.mjs';
import { thisLibrary } from '../subjects/this-library.mjs';

const run = promisify(execFile);
const ROOT = new URL('../../', import.meta.url);
const NEST = ['reflect-metadata', '@nestjs/common', '@nestjs/core', 'rxjs'];
const { name: LIBRARY } = createRequire(import.meta.url)('../../package.json');

/** How each kind of code loads a package. */
const WAYS = {
  require: (name) => `require('${name}');`,
  import: (name) => `await import('${name}');`,
};
/** The names that are imported, and how many KiB of a bundle each may be. */
const IMPORTS = { lockKey: 4, DistributedLock: 236, '*': 340 };

export const load = {
  name: 'load',
  async run({ sizes }) {
    const lines = [];
    for (const [way, statement] of Object.entries(WAYS)) {
      const [nest, library] = await cpuOf(statement, sizes.load.repeats);
      const ratio = library / nest;
      lines.push(
        line(`load: ${way}`, thisLibrary.name, library, 'ms', { ratio, of: 'Nest', note: 'of CPU, after Nest', ...atMost(ratio, 0.25) }),
        line(`load: ${way}`, 'Nest', nest, 'ms', { note: NEST.slice(1).join(', ') }),
      );
    }
    for (const [name, most] of Object.entries(IMPORTS)) {
      const kib = (await bundledBytes(name)) / 1_024;
      lines.push(line('bundle', `import ${name}`, kib, 'KiB', { note: 'minified, without Nest', ...atMost(kib, most) }));
    }
    return lines;
  },
};

/** The median CPU time of a cold load, in milliseconds: of Nest, and of the library after it. */
async function cpuOf(statement, repeats) {
  const script = `(async () => {
    const spent = (since) => { const { user, system } = process.cpuUsage(since); return (user + system) / 1e3; };
    const before = process.cpuUsage();
    ${NEST.map(statement).join('\n')}
    const nest = spent(before);
    const between = process.cpuUsage();
    ${statement(LIBRARY)}
    console.log(JSON.stringify([nest, spent(between)]));
  })()`;
  const times = [];
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const { stdout } = await run(process.execPath, ['--input-type=commonjs', '--eval', script], { cwd: ROOT });
    times.push(JSON.parse(stdout));
  }
  return [0, 1].map((at) => median(times.map((pair) => pair[at])));
}

async function bundledBytes(name) {
  const names = name === '*' ? '* as all' : `{ ${name} as all }`;
  const { outputFiles } = await build({
    stdin: { contents: `import ${names} from '${LIBRARY}'; console.log(all);`, resolveDir: new URL('.', ROOT).pathname },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: ['@nestjs/*', 'rxjs', 'reflect-metadata', 'ioredis'],
    logLevel: 'error',
  });
  return outputFiles[0].contents.length;
}
