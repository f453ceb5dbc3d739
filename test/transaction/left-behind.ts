import { AsyncResource } from 'node:async_hooks';
import { EventEmitter } from 'node:events';

type Work = () => Promise<void>;

/**
 * Ways in which a transaction leaves code behind: each is called inside it, and gives a function that runs `work` in
 * its context later.
 */
export const LEFT_BEHIND: Readonly<Record<string, (work: Work) => Work>> = {
  'the async listener of an event': (work) => {
    const events = new EventEmitter();
    const committed = signal();
    const ran = signal();
    events.on('credited', async () => {
      await committed.sent;
      await work().finally(ran.send);
    });
    events.emit('credited');
    return () => (committed.send(), ran.sent);
  },
  'a timer': (work) => {
    let isCommitted = false;
    const ran = signal();
    const timer = setInterval(() => {
      if (isCommitted) {
        clearInterval(timer);
        void work().finally(ran.send);
      }
    }, 1);
    return () => ((isCommitted = true), ran.sent);
  },
  'a promise that is not awaited': (work) => {
    const committed = signal();
    const ran = committed.sent.then(work);
    return () => (committed.send(), ran);
  },
  'a worker that its first caller started': (work) => {
    const jobs = new EventEmitter();
    // One loop for the life of the process: all jobs run in the context of the first caller.
    void (async () => {
      for (;;) {
        const done = await new Promise<() => void>((resolve) => jobs.once('job', resolve));
        await work().finally(done);
      }
    })();
    return () => new Promise((done) => jobs.emit('job', done));
  },
  'an AsyncResource': (work) => {
    const resource = new AsyncResource('test');
    return () => resource.runInAsyncScope(work);
  },
};

function signal(): { readonly sent: Promise<void>; readonly send: () => void } {
  let send!: () => void;
  const sent = new Promise<void>((resolve) => (send = resolve));
  return { sent, send };
}
