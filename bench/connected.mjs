/** Connects each subject, runs `work` with the connections by subject, and closes them. */
export async function connected(subjects, port, options, work) {
  const connections = new Map();
  try {
    for (const subject of subjects) {
      connections.set(subject, await subject.connect(port, options));
    }
    return await work(connections);
  } finally {
    await Promise.all([...connections.values()].map((connection) => connection.close()));
  }
}
