import { until } from './until';

/**
 * The error with which the start of a store is refused. Where the machine stands still for long, a start warns that its
 * server did not answer, and is repeated.
 */
export async function refusalOf(start: () => Promise<unknown>): Promise<Error> {
  let refusal: Error | undefined;
  await until('that the start is refused', async () => {
    refusal = await start().then(
      () => undefined,
      (error: Error) => error,
    );
    return refusal !== undefined;
  });
  return refusal as Error;
}
