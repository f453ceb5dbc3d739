// `node:timers/promises` in the time that is played.
export function setTimeout(ms, value, { signal } = {}) {
  return new Promise((resolve, reject) => {
    const timer = globalThis.setTimeout(() => resolve(value), ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

export const setImmediate = () => new Promise((resolve) => globalThis.setImmediate(resolve));
