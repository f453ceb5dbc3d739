/** Says on stderr what is being measured, so that stdout has results only. */
export async function withProgress(name, work) {
  const start = performance.now();
  process.stderr.write(`${name} …`);
  const result = await work();
  process.stderr.write(` ${((performance.now() - start) / 1_000).toFixed(1)} s\n`);
  return result;
}
