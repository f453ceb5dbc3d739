/** The long tests play other scenarios in each run. All suites inherit the seed, and what it says repeats them. */
export default function chooseSeed() {
  const { TEST_LONG, MODEL_SEED } = process.env;
  if (TEST_LONG !== undefined) {
    process.env.MODEL_SEED = MODEL_SEED ?? String(Math.floor(Math.random() * 1_000_000));
    console.log(`The scenarios are those of MODEL_SEED=${process.env.MODEL_SEED}.`);
  }
}
