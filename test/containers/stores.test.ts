import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freshUser } from '../support/subject.ts';
import type { WirePage } from '../support/wire.ts';
import { clientAt, docker, folderThere, project, ready } from './engine.ts';
import { standIn } from './images.ts';

const omp = project({ COMPOSE_FILE: 'docker-compose.yml:deploy/compose/stores.yml' });
beforeAll(async () => {
  await docker('build', '--quiet', '--target', 'build', '--tag', 'local/omp-gateway-build', folderThere('sources'));
  await standIn('pinecone');
});
afterAll(omp.end);

it('[Decision 48] deploy/compose/stores.yml mounts two stores, one of which may be absent', async () => {
  const client = clientAt();
  const user_id = freshUser();
  const listed = async () => {
    const { body, headers } = await client.ask('/memories', { user_id });
    const scopes = (body as WirePage).items.map(({ scope }) => scope);
    return { scopes: scopes.sort(), partial: headers.get('x-partial') };
  };
  await omp.compose('up', '--detach', '--wait', 'gateway');
  await ready();
  await client.add({ user_id, content: 'in the bundled Postgres' });
  await client.add({ user_id, content: 'in a schema of its own', scope: 'archive/2025' });
  expect(await listed()).toEqual({ scopes: ['archive/2025', null], partial: 'crm' });

  await omp.compose('up', '--detach', 'pinecone');
  await eventually(async () => void (await client.add({ user_id, content: 'in the emulator', scope: 'crm/leads' })));
  await eventually(async () =>
    expect(await listed()).toEqual({ scopes: ['archive/2025', 'crm/leads', null], partial: null }),
  );
  expect(await omp.gateway('gateway', 'doctor')).toContain('crm');
});
