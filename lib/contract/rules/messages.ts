import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rulesWith, type Rule } from '../rule.js';
import { eventually, type OfferedStore } from '../trial.js';

const messageRule = rulesWith({ needs: ['messages'] });

/** The messages that a store gets, as they come. */
function heardBy({ messages }: OfferedStore): readonly string[] {
  const heard: string[] = [];
  messages.onMessage((text) => heard.push(text));
  return heard;
}

/** How messages between processes behave. Each is sent until it arrives: one may be lost. */
export const MESSAGE_RULES: readonly Rule[] = [
  messageRule('a message arrives at the process that it is for, and at no other', async (trial) => {
    const [mine, theirs] = [heardBy(trial.store), heardBy(trial.other)];
    const text = `for the other ${randomUUID()}`;
    await arrives(theirs, text, () => trial.store.messages.send(text, trial.other.messages.process));
    // A later message arrives later: by then the first message would be here too.
    const last = `for this one ${randomUUID()}`;
    await arrives(mine, last, () => trial.other.messages.send(last, trial.store.messages.process));
    assert.ok(trial.store.messages.process === trial.other.messages.process || !mine.includes(text), 'the sender got it');
  }),

  messageRule('a message without a process arrives at all of them, the sender included', async (trial) => {
    const [mine, theirs] = [heardBy(trial.store), heardBy(trial.other)];
    const text = `for all ${randomUUID()}`;
    await arrives(theirs, text, () => trial.store.messages.send(text));
    await arrives(mine, text, () => trial.store.messages.send(text));
  }),

  messageRule('a long message arrives whole, with every kind of character', async (trial) => {
    const theirs = heardBy(trial.other);
    const text = `${randomUUID()} "'\\%{}\n\r\t é 漢 😀 ${'0123456789abcdé😀'.repeat(10_000)}`;
    await arrives(theirs, text, () => trial.store.messages.send(text, trial.other.messages.process));
  }),

  messageRule('a message to a process that is not there is lost without an error', async (trial) => {
    await trial.store.messages.send('nobody hears it', 'host:1:00000000');
  }),

  messageRule('inspect shows the processes whose holds are in the lock', { needs: ['operator'] }, async (trial) => {
    await trial.acquired();
    const { processes } = (await trial.other.operator.inspect(trial.key)) ?? {};
    assert.deepEqual(processes, [trial.store.messages.process]);
  }),
];

async function arrives(heard: readonly string[], text: string, send: () => Promise<void>): Promise<void> {
  for (let tries = 1; !heard.includes(text); tries++) {
    await send();
    await eventually(() => assert.ok(heard.includes(text), 'the message did not arrive'), 700).catch((error: unknown) => {
      if (tries === 3) {
        throw error;
      }
    });
  }
}
