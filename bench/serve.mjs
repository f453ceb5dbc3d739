/** The worker's side of worker.mjs: one function for each question. */
export function serve(answers) {
  process.on('message', async ({ id, question, data }) => {
    try {
      process.send({ id, answer: await answers[question](data) });
    } catch (error) {
      process.send({ id, error: String(error?.stack ?? error) });
    }
  });
  process.on('disconnect', () => process.exit());
}
