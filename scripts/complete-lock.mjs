// Run after a change of dependencies, where `npm ci` says that platform packages are missing from the lock file: npm
// leaves out optional packages of other platforms when the registry in use does not have them, and then refuses its own
// lock file.
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const added = [];
for (const { optionalDependencies = {} } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const path = `node_modules/${name}`;
    const platform = name.slice(name.indexOf('/') + 1);
    const os = SYSTEMS.find((system) => platform.includes(system));
    const cpu = PROCESSORS.find((processor) => platform.includes(processor));
    if (lock.packages[path] || !cpu || (!os && cpu !== 'wasm32') || !/^\d/.test(version)) {
      continue;
    }
    const libc = os === 'linux' && /(musl|gnu)/.exec(platform)?.[1];
    lock.packages[path] = {
      version,
      cpu: [cpu],
      dev: true,
      optional: true,
      ...(libc && { libc: [libc === 'gnu' ? 'glibc' : libc] }),
      ...(os && { os: [os] }),
    };
    added.push(`${name}@${version}`);
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync('package-lock.json', `${JSON.stringify(lock, undefined, 2)}\n`);
console.log(`${added.length} platform packages added: ${added.join(', ')}`);
