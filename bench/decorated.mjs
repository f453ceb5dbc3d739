/** A class with one locked method that does nothing, decorated by hand: plain JavaScript has no syntax for it. */
export function makeDecorated(decorator) {
  class Balance {
    async credit(customerId) {
      return customerId;
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Balance.prototype, 'credit');
  const replaced = decorator(Balance.prototype, 'credit', descriptor) ?? descriptor;
  Object.defineProperty(Balance.prototype, 'credit', replaced);
  return Balance;
}

export class PlainBalance {
  async credit(customerId) {
    return customerId;
  }
}

const plain = new PlainBalance();

/** Adds the same method without a decorator, as a user of `acquire` and `release` writes it. */
export function byHand(connection) {
  return {
    ...connection,
    async call(customerId) {
      const held = await connection.acquire(`balance:${customerId}`);
      try {
        return await plain.credit(customerId);
      } finally {
        await connection.release(held);
      }
    },
  };
}
