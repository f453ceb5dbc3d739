import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Inject, type DynamicModule } from '@nestjs/common';
import { Args, Field, GraphQLModule, Int, ObjectType, Parent, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { acceptTickets, ticketHeaders } from 'nestjs-distributed-lock/tickets';
import { Applications, Stock } from './applications';

@ObjectType()
class Order {
  @Field(() => String)
  id!: string;
}

@Resolver(() => Order)
class Orders {
  constructor(@Inject(Stock) private readonly stock: Stock) {}

  @Query(() => Order)
  async order(@Args('id', { type: () => String }) id: string): Promise<Order> {
    await this.stock.reserve(id);
    return { id };
  }

  @ResolveField(() => Number)
  fence(@Parent() { id }: Order): Promise<number> {
    return this.stock.reserve(id);
  }

  @ResolveField(() => Int)
  async other(@Parent() { id }: Order): Promise<number> {
    return (await this.stock.reserve(id)) > 0 ? 1 : 0;
  }
}

let applications: Applications;
beforeAll(async () => {
  applications = await Applications.open();
});
afterEach(() => applications.end());
afterAll(() => applications.close());

const SERVERS: readonly [string, () => ExpressAdapter | FastifyAdapter, () => DynamicModule][] = [
  [
    'Apollo',
    () => new ExpressAdapter(),
    () => GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
  ],
  [
    'Mercurius',
    () => new FastifyAdapter(),
    () => GraphQLModule.forRoot<MercuriusDriverConfig>({ driver: MercuriusDriver, autoSchemaFile: true }),
  ],
];

describe.each(SERVERS)('over GraphQL with %s', (_, adapter, graphql) => {
  async function ask(url: string): Promise<[status: number, answer: unknown]> {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...ticketHeaders() },
      body: JSON.stringify({ query: '{ order(id: "1") { id fence other } }' }),
    });
    return [response.status, await response.json()];
  }

  test.each([
    ['with the opt-in, resolvers of queries and of fields enter the lock of the caller', true],
    ['without it they wait for it, and are refused', false],
  ])('%s', async (__, accepts) => {
    const shop = await applications.shop();
    const application = await applications.start({
      wait: accepts ? 10_000 : 300,
      adapter: adapter(),
      imports: [graphql()],
      providers: [Orders],
      configure: (app) => (accepts ? app.use(acceptTickets()) : undefined),
    });
    const url = await application.getUrl();
    await shop.order('1', async (fence) => {
      const [, answer] = await ask(url);
      expect(answer).toMatchObject(
        accepts ? { data: { order: { id: '1', fence, other: 1 } } } : { errors: [{ extensions: { code: 'LOCK_NOT_ACQUIRED' } }] },
      );
    });
  });

  test('a header that is malformed is answered with 400', async () => {
    const configure = (app: { use(middleware: unknown): unknown }): unknown => app.use(acceptTickets());
    const application = await applications.start({ adapter: adapter(), imports: [graphql()], providers: [Orders], configure });
    const headers = { 'content-type': 'application/json', 'lock-tickets': 'nonsense' };
    const response = await fetch(`${await application.getUrl()}/graphql`, { method: 'POST', headers, body: '{"query":"{ __typename }"}' });
    expect(response.status).toBe(400);
  });
});
