import { script, scriptForEach } from '../../lib/redis/scripts/script.js';

const one = script('one', { keys: ['lock', 'done'], args: ['owner'], numbers: ['ttl'] }, '');
one.command('k', { lock: 'l', done: 'd', owner: 'o', ttl: 1 });
// @ts-expect-error -- a key is missing
one.command('k', { lock: 'l', owner: 'o', ttl: 1 });
// @ts-expect-error -- an argument is misnamed
one.command('k', { lock: 'l', done: 'd', owner: 'o', tll: 1 });
// @ts-expect-error -- there is one too many
one.command('k', { lock: 'l', done: 'd', owner: 'o', ttl: 1, fence: 1 });
// @ts-expect-error -- a number is a text
one.command('k', { lock: 'l', done: 'd', owner: 'o', ttl: '1' });

const many = scriptForEach('many', { keys: ['lock'], args: ['owner'] }, '');
many.command('k', [{ lock: 'l', owner: 'o' }]);
// @ts-expect-error -- an argument of one member is missing
many.command('k', [{ lock: 'l' }]);

const further = script('further', { keys: ['lock'], rest: 'more' }, '');
further.command('k', { lock: 'l', more: [1, 'two'] });
// @ts-expect-error -- the rest is missing
further.command('k', { lock: 'l' });
