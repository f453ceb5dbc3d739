import { fork } from 'node:child_process';

/** Starts processes of their own, runs `work` with them, and ends them. */
export async function withWorkers(name, count, work, execArgv = []) {
  const workers = Array.from({ length: count }, () => startWorker(name, execArgv));
  try {
    return await work(workers);
  } finally {
    workers.forEach((worker) => worker.stop());
  }
}

/** Asks all of them at once. */
export function askAll(workers, question, data) {
  return Promise.all(workers.map((worker) => worker.ask(question, data)));
}

/** A process that answers questions; see serve.mjs for its side. */
export function startWorker(name, execArgv) {
  const child = fork(new URL(`workers/${name}.mjs`, import.meta.url), { execArgv });
  const open = new Map();
  let last = 0;
  child.on('message', ({ id, answer, error }) => {
    const { resolve, reject } = open.get(id);
    open.delete(id);
    if (error === undefined) {
      resolve(answer);
    } else {
      reject(new Error(`worker ${name}: ${error}`));
    }
  });
  child.on('exit', (code) => {
    for (const { reject } of open.values()) {
      reject(new Error(`worker ${name} ended with code ${code}`));
    }
  });
  return {
    ask(question, data) {
      const id = (last += 1);
      return new Promise((resolve, reject) => {
        open.set(id, { resolve, reject });
        child.send({ id, question, data });
      });
    },
    pid: child.pid,
    stop: () => child.kill('SIGKILL'),
  };
}
