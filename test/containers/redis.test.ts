import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { clientAt, project, ready } from './engine.ts';
import { standIn } from './images.ts';

const SETTINGS = { COMPOSE_PROFILES: 'redis', OMP_RATE_LIMIT_STORE: 'redis', OMP_RATE_LIMIT_PER_MINUTE: '100' };
const omp = project({ ...SETTINGS, OMP_REDIS_URL: 'redis://redis:6379' });
beforeAll(() => standIn('redis'));
afterAll(omp.end);

it('counts requests in the Redis of the profile', async () => {
  await omp.compose('up', '--detach', '--wait');
  await clientAt().list({ user_id: 'ana' });
  expect(await omp.compose('exec', '-T', 'redis', 'redis-cli', '--scan')).toMatch(/^omp:requests:/m);
});

it('logs why Redis rejects it', async () => {
  await omp.compose('exec', '-T', 'redis', 'redis-cli', 'config', 'set', 'requirepass', 'secret');
  await omp.compose('restart', '--no-deps', 'gateway');
  await ready();
  await eventually(async () => expect(await omp.logs('gateway')).toContain('NOAUTH'));
});
