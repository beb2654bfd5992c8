import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { clientAt, docker, FOLDER, project, ready } from './engine.ts';
import { build, IMAGES } from './images.ts';

/** A clone without history has no version before this one. */
const NO_HISTORY = existsSync(join(FOLDER, 'previous')) ? '' : 'git has no commit of the version before';

/** Three gateways. */
const PORTS = { OMP_PORT: '8080-8082' };
const SCALE = ['--scale', 'gateway=3'];

/** The version of the schema that it makes. */
async function schemaOf(version: string): Promise<number> {
  const migrations = '/app/dist/providers/postgres/startup/migrations.js';
  const script = `import('${migrations}').then(({ MIGRATIONS }) => console.log(MIGRATIONS.length))`;
  return Number(await docker('run', '--rm', '--entrypoint', 'node', `omp-gateway:${version}`, '-e', script));
}

/** What `docker compose up` starts from now on. */
const use = (version: string) => docker('tag', `omp-gateway:${version}`, 'omp-gateway');

beforeAll(async () => {
  if (NO_HISTORY !== '') return;
  await docker('tag', 'omp-gateway', 'omp-gateway:this');
  await build('previous');
  await docker('tag', 'omp-gateway', 'omp-gateway:previous');
  await use('this');
  await docker('build', '--quiet', '--tag', 'omp-gateway:next', `${IMAGES}/next`);
});
afterAll(async () => {
  if (NO_HISTORY === '') await use('this');
});

describe.each([
  ['the version before', 'this one', 'previous', 'this'],
  ['this version', 'one with a newer schema', 'this', 'next'],
] as const)('%s, replaced by %s', (_from, _to, before, after) => {
  const old = project(PORTS, 'upgrade', before === 'previous' ? 'previous' : 'sources');
  const omp = project(PORTS, 'upgrade');
  afterAll(omp.end);
  const clients = [8080, 8081, 8082].map((port) => clientAt(undefined, port));
  const ids: string[] = [];

  /** Each gateway adds a memory, and each finds all of them. */
  async function serve(): Promise<void> {
    for (const port of [8080, 8081, 8082]) await ready(port);
    for (const client of clients)
      ids.push((await client.add({ user_id: 'ana', content: `the note with number ${ids.length}` })).id);
    for (const client of clients) {
      const { items } = await client.list({ user_id: 'ana', limit: 100 });
      expect(items.map(({ id }) => id).sort()).toEqual([...ids].sort());
      expect(await client.search({ user_id: 'ana', q: 'number 0' })).not.toEqual([]);
    }
  }

  it('serves with one of three replaced, then with all', async ({ skip }) => {
    skip(NO_HISTORY !== '', NO_HISTORY);
    await use(before);
    await old.compose('up', '--detach', '--wait', ...SCALE, 'gateway');
    await serve();
    await use(after);
    await docker('stop', 'upgrade-gateway-2');
    await docker('rm', 'upgrade-gateway-2');
    await omp.compose('up', '--detach', '--wait', '--no-recreate', ...SCALE, 'gateway');
    await serve();
    await omp.compose('up', '--detach', '--wait', '--no-deps', ...SCALE, 'gateway');
    await serve();
  });

  it('goes back, unless the schema is newer than it knows', async ({ skip }) => {
    skip(NO_HISTORY !== '', NO_HISTORY);
    await use(before);
    await docker('stop', 'upgrade-gateway-3');
    await docker('rm', 'upgrade-gateway-3');
    await old.compose('up', '--detach', '--no-recreate', ...SCALE, 'gateway');
    if ((await schemaOf(after)) > (await schemaOf(before)))
      await eventually(async () =>
        expect(await omp.logs('gateway')).toMatch(/newer than this gateway knows.*upgrade omp-gateway/),
      );
    else await serve();
  });
});

it('the embedded Postgres goes on with the data folder of the version before', async ({ skip }) => {
  skip(NO_HISTORY !== '', NO_HISTORY);
  const old = project({}, 'upgrade', 'previous');
  const omp = project({}, 'upgrade');
  try {
    await use('previous');
    await old.compose('up', '--detach', '--wait', 'embedded');
    const { id } = await clientAt().add({ user_id: 'ana', content: 'was there before' });
    await use('this');
    await omp.compose('up', '--detach', '--wait', 'embedded');
    expect((await clientAt().get(id)).content).toBe('was there before');
  } finally {
    await omp.end();
  }
});
