// Passes TCP on, each chunk a while after it came, in both directions and without one chunk waiting for another.
import { createServer, connect } from 'node:net';

/**
 * Longer than this before the next chunk is due, the process sleeps a little; a timer of Node would sleep a
 * millisecond.
 */
const NAP_MS = 0.05;
const napping = new Int32Array(new SharedArrayBuffer(4));
let delayMs = 0.5;
let pending = [];
let running = false;

function passOn() {
  const now = performance.now();
  let sent = 0;
  while (sent < pending.length && pending[sent].at + delayMs <= now) {
    const { to, chunk } = pending[sent];
    if (chunk) {
      to.write(chunk);
    } else {
      to.end();
    }
    sent += 1;
  }
  if (sent > 0) {
    pending = pending.slice(sent);
  }
  running = pending.length > 0;
  if (running) {
    if (pending[0].at + delayMs - now > 3 * NAP_MS) {
      Atomics.wait(napping, 0, 0, NAP_MS);
    }
    setImmediate(passOn);
  }
}

function delay(to, chunk) {
  pending.push({ at: performance.now(), to, chunk });
  if (!running) {
    running = true;
    setImmediate(passOn);
  }
}

function link(from, to) {
  from.setNoDelay(true);
  from.on('data', (chunk) => delay(to, chunk));
  from.on('end', () => delay(to, undefined));
  from.on('error', () => to.destroy());
}

function listen(target) {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    link(near, far);
    link(far, near);
  });
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
}

process.on('message', (message) => {
  if (message.target) {
    listen(message.target);
  } else {
    ({ delayMs } = message);
  }
});
process.on('disconnect', () => process.exit());
