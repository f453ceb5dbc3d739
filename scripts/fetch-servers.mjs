// Fetches servers of other suites of Debian, each into a folder of its own, where it runs with its own loader and
// libraries: the machine stays as it is. node scripts/fetch-servers.mjs [name…]. One line says what cannot be had.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { folderOf, SERVERS, versionOf } from './fetched-servers.mjs';

/** How long one command may take, in milliseconds. */
const LIMIT_MS = 120_000;
/** The keys of Debian, whichever suite of it the machine has. */
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';
/** The packages that a server needs beside its own: libraries, but for those of other programs. */
const LIBRARIES = /^(?:lib(?!.*perl|c-gconv|llvm|pam|systemd-shared)|zlib)/;
/** Packages that no server needs. */
const LEFT_OUT = ['doc', 'man', 'locale', 'perl'].map((folder) => `usr/share/${folder}`);

function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', timeout: LIMIT_MS, ...options });
  if (status !== 0) {
    const why = error?.message ?? stderr.trim().split('\n').find((line) => line.startsWith('E:')) ?? stderr.trim(); // prettier-ignore
    throw new Error(`${command} ${args[0]}: ${why}`);
  }
  return stdout;
}

/** Where the machine gets its packages from. */
function sourceOfMachine() {
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const targets = run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(RELEASE) $(COMPONENT)', 'Created-By: Packages']);
  const target = targets.split('\n').find((line) => line.endsWith(` ${codename} main`));
  if (target === undefined) {
    throw new Error(`apt-get has no source of ${codename ?? 'the system'}`);
  }
  return target.split(' ')[0];
}

/** A root of apt with suites of its own, in which nothing is installed. It fetches as the machine does. */
class AptRoot {
  #folder = mkdtempSync(join(tmpdir(), 'apt-'));
  #suites;

  constructor(suites) {
    this.#suites = suites;
  }

  /** Reads the lists of the suites. */
  update() {
    const uri = sourceOfMachine();
    for (const folder of ['etc/apt/apt.conf.d', 'var/lib/apt/lists/partial', 'var/cache/apt/archives/partial', 'debs']) {
      mkdirSync(join(this.#folder, folder), { recursive: true });
    }
    const fetching = run('apt-config', ['dump']).split('\n').filter((line) => /^Acquire::(?!IndexTargets|Languages)/.test(line)); // prettier-ignore
    const settings = {
      Dir: this.#folder,
      'Dir::State::status': join(this.#folder, 'status'),
      'APT::Install-Recommends': 'false',
      'APT::Sandbox::User': '',
      'APT::Update::Error-Mode': 'any',
      'Acquire::Languages': 'none',
      'Acquire::http::Timeout': '10',
      'Acquire::Retries': '1',
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} "${value}";`);
    this.#write('apt.conf', [...fetching, ...lines]);
    this.#write('status', []);
    this.#write('etc/apt/sources.list', this.#suites.map((suite) => `deb [signed-by=${KEYS}] ${uri} ${suite} main`)); // prettier-ignore
    this.#apt(['update']);
  }

  /** Fetches the packages of a server with their libraries. Answers the files, and the server's version. */
  fetch(packages) {
    const simulated = this.#apt(['install', '--simulate', '--target-release', this.#suites.at(-1), ...packages]);
    const found = [...simulated.matchAll(/^Inst (\S+) \((\S+)/gm)].map(([, name, version]) => ({ name, version }));
    // The programs of redis-server are in redis-tools.
    const isItsOwn = (name) => packages.includes(name.replace(/-tools$/, '-server'));
    const needed = found.filter(({ name }) => isItsOwn(name) || LIBRARIES.test(name));
    const debs = join(this.#folder, 'debs');
    this.#apt(['download', ...needed.map(({ name, version }) => `${name}=${version}`)], { cwd: debs });
    const fetched = readdirSync(debs);
    const files = needed.map(
      ({ name, version }) =>
      join(debs, fetched.find((file) => file.startsWith(`${name}_${version.replaceAll(':', '%3a')}_`))), // prettier-ignore
    );
    const { version } = found.find(({ name }) => name === packages[0]);
    return { files, version: version.replaceAll(/^\d+:|[-+~].*$/g, '') };
  }

  end() {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(name, lines) {
    writeFileSync(join(this.#folder, name), lines.map((line) => `${line}\n`).join(''));
  }

  #apt([command, ...args], options) {
    return run('apt-get', [command, '-q', ...args], {
      env: { ...process.env, APT_CONFIG: join(this.#folder, 'apt.conf'), LC_ALL: 'C' },
      ...options,
    });
  }
}

/** Unpacks a server. In the place of each program comes a script that starts it. */
function unpack(name, { files, version }) {
  if (!name.endsWith(`-${version.split('.')[0]}`)) {
    throw new Error(`Debian has version ${version} there`);
  }
  const root = folderOf(name);
  const made = `${root}.${process.pid}`;
  mkdirSync(join(made, 'bin'), { recursive: true });
  files.forEach((file) => run('dpkg-deb', ['-x', file, made]));
  LEFT_OUT.forEach((folder) => rmSync(join(made, folder), { recursive: true, force: true }));
  const found = (pattern) => run('find', ['.', '-path', pattern], { cwd: made }).trim().split('\n');
  const loader = join(root, found('*-linux-*/ld-linux*.so.*')[0]);
  const folders = new Set(found('*/lib/*-linux-*/lib*.so.*').map(dirname).filter((folder) => /-linux-\w+$/.test(folder))); // prettier-ignore
  const libraries = [...folders].map((folder) => join(root, folder)).join(':');
  for (const [program, [path, ...last]] of Object.entries(SERVERS[name].programs)) {
    const file = join(made, path);
    const args = ['"$@"', ...last.map((arg) => `"${arg.replace('$root', root)}"`)].join(' ');
    if (readFileSync(file).subarray(1, 4).toString() === 'ELF') {
      renameSync(realpathSync(file), `${file}.elf`);
      rmSync(file, { force: true });
      // Programs find their files, and what they are, by the name that they were started with.
      const how = `"${loader}" --library-path "${libraries}" --argv0 "${join(root, path)}"`;
      writeFileSync(file, `#!/bin/sh\nexec ${how} "${join(root, path)}.elf" ${args}\n`, { mode: 0o755 });
      symlinkSync(join(root, path), join(made, 'bin', program));
    } else {
      writeFileSync(join(made, 'bin', program), `#!/bin/sh\nexec "${join(root, path)}" ${args}\n`, { mode: 0o755 });
    }
  }
  writeFileSync(join(made, 'version'), version);
  run('chmod', ['-R', 'a+rX', made]);
  rmSync(root, { recursive: true, force: true });
  renameSync(made, root);
}

const wanted = process.argv.slice(2);
const missing = (wanted.length > 0 ? wanted : Object.keys(SERVERS)).filter((name) => versionOf(name) === undefined);
for (const suites of new Set(missing.map((name) => SERVERS[name].suites.join(' ')))) {
  const apt = new AptRoot(suites.split(' '));
  let why;
  try {
    apt.update();
  } catch (error) {
    why = error.message;
  }
  for (const name of missing.filter((each) => SERVERS[each].suites.join(' ') === suites)) {
    try {
      if (why !== undefined) {
        throw new Error(why);
      }
      unpack(name, apt.fetch(SERVERS[name].packages));
      console.log(`${name}: fetched ${versionOf(name)} from ${suites.split(' ').at(-1)}.`);
    } catch (error) {
      console.log(`${name}: not run, it cannot be had from ${suites.split(' ').at(-1)} of Debian (${error.message}).`);
    }
  }
  apt.end();
}
