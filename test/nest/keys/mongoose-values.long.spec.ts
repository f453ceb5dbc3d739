import mongoose from 'mongoose';
import { keyOf, refusalOf } from './keys-of-values';

const HEX = '507f1f77bcf86cd799439011';
const Order = mongoose.model('Order', new mongoose.Schema({ name: String }));

test.each([
  ["Mongoose's ObjectId", new mongoose.Types.ObjectId(HEX), HEX],
  ["Mongoose's UUID", new mongoose.mongo.UUID('6e8bc430-9c3a-11d9-9669-0800200c9a66'), '6e8bc430-9c3a-11d9-9669-0800200c9a66'],
  ["the id of Mongoose's document", new Order({ _id: HEX }).get('_id'), HEX],
])('%s is the text that it has in JSON', (_, id, text) => {
  expect(keyOf(id)).toBe(`order:${text}`);
});

test('an ObjectId locks with its text, and not with another', () => {
  const id = new mongoose.Types.ObjectId();
  expect(keyOf(id)).toBe(keyOf(String(id)));
  expect(keyOf(id)).not.toBe(keyOf(new mongoose.Types.ObjectId()));
});

test("Mongoose's document is refused, with what to write instead", () => {
  const { detail } = refusalOf(new Order({ name: 'secret' }));
  expect(detail).toContain('<orderId> is an object, which cannot be part of a key. ');
  expect(detail).toMatch(/key: \(id\) => lockKey`order:\$\{id\.…\}`\.$/);
  expect(detail).not.toContain('secret');
});
