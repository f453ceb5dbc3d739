import 'reflect-metadata';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Inject, type DynamicModule, type INestApplication } from '@nestjs/common';
import { Args, Field, GraphQLModule, ObjectType, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import request from 'supertest';
import { CODES, KINDS, secretsIn, STATUSES, Vault, type Kind } from '../support/vault';
import { expectFullLog, FILTERS, keepLogs, logged, start } from '../support/vault-application';

@ObjectType()
class Account {
  @Field(() => String)
  id!: string;
}

@Resolver(() => Account)
class Accounts {
  constructor(@Inject(Vault) private readonly vault: Vault) {}
  @Query(() => String, { nullable: true })
  fail(@Args('kind', { type: () => String }) kind: Kind): Promise<string> {
    return this.vault.fail(kind);
  }
  @Query(() => Account)
  account(): Account {
    return { id: '1' };
  }
  /** Nest runs no filter here. */
  @ResolveField(() => String, { nullable: true })
  balance(): Promise<string> {
    return this.vault.busy('1');
  }
}

keepLogs();

interface GraphqlAnswer {
  readonly data?: unknown;
  readonly errors?: readonly { message: string; extensions: Record<string, unknown> }[];
}

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

describe.each(SERVERS)('over GraphQL with %s', (server, adapter, graphql) => {
  async function ask(application: INestApplication, query: string): Promise<[text: string, answer: GraphqlAnswer]> {
    const { text } = await request(application.getHttpServer()).post('/graphql').send({ query });
    return [text, JSON.parse(text) as GraphqlAnswer];
  }

  describe.each(FILTERS)('%s', (_, filtered) => {
    test.each(['development', 'production'])('clients read a code, and neither key nor host, in %s', async (environment) => {
      process.env['NODE_ENV'] = environment;
      const application = await start(adapter(), { filtered, imports: [graphql()], more: [Accounts] });
      const showsStacks = server === 'Apollo' && environment === 'development' && !filtered;
      for (const kind of KINDS) {
        logged.length = 0;
        const [text, { errors: [error] = [] }] = await ask(application, `{ fail(kind: "${kind}") }`);
        expect(error?.extensions).toMatchObject({ code: CODES[kind], statusCode: STATUSES[kind] });
        if (kind === 'busy') {
          expect(error?.extensions['retryAfterMs']).toEqual(expect.any(Number));
        }
        expect(error?.message).toMatch(/^(The lock was |The lock store |A call has no usable key|A lock is )/);
        const { stacktrace, ...others } = error?.extensions ?? {};
        expect(secretsIn(JSON.stringify([error?.message, others]))).toEqual([]);
        expect(secretsIn(text).length > 0).toBe(showsStacks);
        expect(stacktrace !== undefined && secretsIn(JSON.stringify(stacktrace)).length > 0).toBe(showsStacks);
        expectFullLog(kind);
      }
      const [text, { errors: [error] = [] }] = await ask(application, '{ account { id balance } }');
      expect(error?.extensions['code']).toBe('LOCK_NOT_ACQUIRED');
      expect(environment === 'production' ? secretsIn(text) : secretsIn(error?.message ?? '')).toEqual([]);
    });
  });
});
