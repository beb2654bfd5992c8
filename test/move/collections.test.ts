import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DATABASES } from '../collections/databases.ts';
import { dataFolder, runProgram, serveHere, startGateway, startProgram, temporaryFolder } from '../process/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { FULL } from '../support/full.ts';
import { all } from './all.ts';
import { runHere } from './run.ts';

/**
 * The kit makes them alike above their points, which `test/collections/properties.test.ts` compares for each. So the quick run moves to those
 * on a server, and to the stand-in of one.
 */
const MOVED = DATABASES.filter(({ name }) => FULL || (name !== 'libSQL' && name !== 'LanceDB'));

const VECTORS = { OMP_SEARCH_MODE: 'vector' };
const onMemory = async () => startGateway({ env: { OMP_PROVIDER: 'memory', ...VECTORS } });

test.for(MOVED)(
  '[Decision 43] memories move to $name and back with their ids and times',
  async ({ provider, absent, open }, { skip }) => {
    skip(absent !== '', absent);
    const database = await open();
    onTestFinished(() => void database.close());
    const env = { ...VECTORS, ...database.env, OMP_PROVIDER: provider.name, OMP_DATA_DIR: await dataFolder() };
    const [source, target] = [await onMemory(), await onMemory()];
    for (const user_id of ['ana', 'ben']) {
      const memories = Array.from({ length: 60 }, (_, n) => ({
        ...{ user_id, content: `note ${n}`, tags: n % 2 ? ['odd'] : [], scope: n % 3 ? 'a/b' : null, 'x-n': { n } },
      }));
      expect(await source.client.tell('POST', '/memories/batch', { memories })).toMatchObject({ status: 200 });
    }
    const move = async (...args: readonly string[]) => {
      const { status, stdout, stderr } = await runProgram({ args, env });
      expect(status, `${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
      return stdout;
    };
    await move('migrate', '--from', source.url, '--to', 'config');
    expect(await move('verify', source.url, 'config')).toContain('No memory differs.');
    await move('migrate', '--from', 'config', '--to', target.url);
    expect(await move('verify', source.url, target.url)).toContain('No memory differs.');
  },
);

test.for(MOVED)(
  '[Decision 53] [Decision 64] $name follows a store by its feed, and is followed by comparisons, through every kind of change',
  async ({ provider, absent, open }, { skip }) => {
    skip(absent !== '', absent);
    const database = await open();
    onTestFinished(() => void database.close());
    const [first, between, last] = [
      await serveHere(VECTORS),
      await serveHere({ ...VECTORS, ...database.env, OMP_PROVIDER: provider.name, OMP_DATA_DIR: await dataFolder() }),
      await serveHere(VECTORS),
    ];
    const memories = Array.from({ length: 30 }, (_, n) => ({
      ...{ user_id: `user ${n % 3}`, content: `note ${n}`, tags: [`t${n % 2}`], scope: n % 3 ? 'a/b' : null },
    }));
    expect(await first.client.tell('POST', '/memories/batch', { memories })).toMatchObject({ status: 200 });
    const folder = temporaryFolder();
    const moves = [
      ['migrate', first.url, between.url, '--progress', join(folder, 'to.json')],
      ['migrate', between.url, last.url, '--progress', join(folder, 'from.json')],
    ];
    const [to, from] = moves.map((args) => startProgram({ args: [...args, '--follow'] }));
    const early = Promise.all(
      [to, from].map((one) => one?.ended.then(({ stderr }) => Promise.reject(new Error(stderr)))),
    );
    const arrived = () => eventually(async () => expect(await all(last)).toEqual(await all(first)));
    await Promise.race([early, arrived()]);
    const { items } = await first.client.list({ user_id: 'user 1' });
    const [changed, deleted] = items.map(({ id }) => id) as [string, string];
    await first.client.update(changed, { content: 'changed', scope: 'c' });
    await first.client.remove(deleted);
    await first.client.add({ user_id: 'new', content: 'added', 'x-n': 1 });
    await first.client.tell('DELETE', '/users/user%202/memories');
    await Promise.race([early, arrived()]);
    early.catch(() => {});
    for (const one of [to, from]) one?.child.kill('SIGINT');
    expect((await to?.ended)?.stderr).toContain('Changes come from the feed of');
    expect((await from?.ended)?.stderr).toContain(
      'has no feed of changes (features.changes is not true): all memories of both are compared again and again.',
    );
    const { status, stderr } = await runHere([
      ...(moves[1] ?? []),
      '--cutover',
      '--report',
      join(folder, 'report.json'),
    ]);
    expect([status, stderr]).toEqual([0, expect.stringContaining('It cannot be frozen: stop everything that writes')]);
  },
);
