import { MethodOptions } from '../../lib/nest/method-options';

test('a method counts under the name that it is given, else under its template', () => {
  const nameOf = (name?: string): string | undefined => new MethodOptions({ key: 'order:<id>', name }, 'Orders.ship').of({}, []).name;
  expect([nameOf('orders'), nameOf()]).toEqual(['orders', 'order:<id>']);
});
