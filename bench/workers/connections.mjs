// The connections of a worker, by subject and port: near and far ones stand side by side.
import { acquireAndReleaseEach, newKeys } from '../pairs.mjs';
import { subjectNamed } from '../subjects/index.mjs';

const connections = new Map();

export async function connect({ subject, port, patient, warmUp }) {
  const connection = await subjectNamed(subject).connect(port, { patient });
  await acquireAndReleaseEach(
    connection,
    newKeys(warmUp).map((key) => `${process.pid}:${key}`),
  );
  connections.set(`${subject} ${port}`, connection);
}

export function connectionOf({ subject, port }) {
  return connections.get(`${subject} ${port}`);
}

export async function close() {
  await Promise.all([...connections.values()].map((connection) => connection.close()));
}
