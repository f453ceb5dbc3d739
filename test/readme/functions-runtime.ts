import 'reflect-metadata';
import { handler } from './functions.js';

// As the runtime of a provider of functions: each event goes to the handler, and its result back.
process.on('message', (event: Parameters<typeof handler>[0]) => {
  void handler(event).then(
    () => process.send?.('credited'),
    (error: unknown) => process.send?.(String(error)),
  );
});
process.send?.('started');
