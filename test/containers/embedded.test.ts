import { afterAll, describe, expect, it } from 'vitest';
import { freshUser } from '../support/subject.ts';
import { clientAt, project, ready } from './engine.ts';
import { gatewaySuite } from './gateway.suite.ts';
import { commandsOf } from './recipes.ts';

const omp = project();
const copy = project({}, 'copy');
afterAll(async () => {
  await omp.end();
  await copy.end();
});

describe('the gateway with the embedded Postgres', () => gatewaySuite(omp, 'embedded', true));

it('the embedded Postgres is saved beside the gateway and restored by the recipe', async () => {
  await omp.end();
  await omp.compose('up', '--detach', '--wait', 'embedded');
  const user_id = freshUser();
  const { id } = await clientAt().add({ user_id, content: 'is in the backup' });
  const [backup = '', ...restore] = commandsOf('docs/operations.md', 'backup -');
  await omp.shell(backup);
  expect(await omp.compose('exec', '-T', 'embedded', 'ls', '/data')).not.toContain('partial');
  await omp.compose('stop', 'embedded');
  for (const line of restore) await copy.shell(line);
  await ready();
  expect((await clientAt().get(id)).content).toBe('is in the backup');
});
