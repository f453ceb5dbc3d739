import * as quorumScripts from '../../lib/quorum/votes/scripts';
import { script, scriptForEach } from '../../lib/redis/scripts/script';
import * as redisScripts from '../../lib/redis/scripts/scripts';
import * as sharedScripts from '../../lib/redis/scripts/shared-scripts';
import { globalsOf } from '../support/lua-names';
import { RedisServer } from '../support/redis-server';

const SCRIPTS = [...Object.values(redisScripts), ...Object.values(sharedScripts), ...Object.values(quorumScripts)];
const OF_LUA = new Set(['ARGV', 'KEYS', 'ipairs', 'math', 'pairs', 'pcall', 'redis', 'string', 'table', 'tonumber', 'type', 'unpack']);

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

const run = ({ source }: { source: string }, parameters: readonly (string | number)[]): Promise<unknown> =>
  server.client.call('EVAL', source, ...parameters);

test('a script has its KEYS and ARGV by the names that it declares, in whichever order they are given', async () => {
  const every = script(
    'every',
    { keys: ['first', 'second'], args: ['text'], numbers: ['number'], rest: 'more' },
    `return {first, second, text .. '', number + 1, type(number), #more, more[2]}`,
  );
  const {
    parameters,
    key,
    script: sent,
  } = every.command('a key', { more: [5, 'last'], number: 7, text: 'yes', second: 'k2', first: 'k1' });
  expect(parameters).toEqual([2, 'k1', 'k2', 'yes', 7, 5, 'last']);
  expect([key, sent.sha]).toEqual(['a key', every.sha]);
  expect(await run(every, parameters)).toEqual(['k1', 'k2', 'yes', 8, 'number', 2, 'last']);
});

test('a script for a list has the names of one member at a time, and replies with a list', async () => {
  const each = scriptForEach(
    'each',
    { keys: ['from', 'to'], args: ['text'], numbers: ['number'] },
    `reply = from .. to .. text .. number + 1`,
  );
  const { parameters } = each.command('', [
    { from: 'a', to: 'b', text: 'x', number: 1 },
    { from: 'c', to: 'd', text: 'y', number: 2 },
  ]);
  expect(parameters).toEqual([4, 'a', 'b', 'c', 'd', 'x', 1, 'y', 2]);
  expect(await run(each, parameters)).toEqual(['abx2', 'cdy3']);
});

test('the names that a script uses without declaring them are found', () => {
  expect(globalsOf(`local a, b = 1 for i, c in ipairs(a) do local d = c.e end return d, i, a, 'f', {g = b} -- h`)).toEqual([
    'd',
    'i',
    'ipairs',
  ]);
  expect(globalsOf('local function f(a) return a + b end if f then local g = 1 elseif g then end return a')).toEqual(['a', 'b', 'g']);
});

test.each(SCRIPTS)('the script $name uses no name that it does not declare', ({ source }) => {
  expect(globalsOf(source).filter((name) => !OF_LUA.has(name))).toEqual([]);
});
