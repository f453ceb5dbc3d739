// Run after a change of dependencies, where `npm ci` says that platform packages are missing from a lock file: npm
// leaves out optional packages of other platforms when the registry in use does not have them, and then refuses its own
// lock file. Some packages do not say for which C library they are, and npm would install those for each.
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

/** The lock files, with what npm says of each package in them. */
const LOCKS = { 'package-lock.json': { dev: true }, 'test/package-lock.json': {} };

/** The first of the words that the name of a platform package has after its scope. */
const wordOf = (name, words) => words.find((word) => name.slice(name.indexOf('/') + 1).includes(word));

/** The C library that a platform package is for, as npm calls it; undefined where its name does not say. */
function libcOf(platform) {
  const libc = /linux.*(musl|gnu)/.exec(platform)?.[1];
  return libc && [libc === 'gnu' ? 'glibc' : libc];
}

for (const [file, kind] of Object.entries(LOCKS)) {
  const lock = JSON.parse(readFileSync(file, 'utf8'));
  const added = [];
  for (const [dependent, { optionalDependencies = {} }] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      // In the folder of the package that needs it, or in one around that.
      const parts = dependent.split(/(?<=.)\/?(?=node_modules\/)/).filter(Boolean);
      const paths = [...parts, ''].map((_, at) => [...parts.slice(0, at), `node_modules/${name}`].join('/'));
      const path = paths[file.startsWith('test/') ? 1 : 0];
      const [os, cpu] = [SYSTEMS, PROCESSORS].map((words) => wordOf(name, words));
      if (paths.some((each) => lock.packages[each]) || !cpu || (!os && cpu !== 'wasm32') || !/^\d/.test(version)) {
        continue;
      }
      lock.packages[path] = { version, cpu: [cpu], ...kind, optional: true, ...(os && { os: [os] }) };
      added.push(`${name}@${version}`);
    }
  }
  for (const [path, entry] of Object.entries(lock.packages)) {
    const libc = entry.optional && entry.os?.includes('linux') && libcOf(path);
    if (libc && !entry.libc) {
      lock.packages[path] = { ...entry, libc };
    }
  }
  lock.packages = Object.fromEntries(Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(file, `${JSON.stringify(lock, undefined, 2)}\n`);
  console.log(`${file}: ${added.length} platform packages added: ${added.join(', ')}`);
}
