import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { project } from './engine.ts';
import { standIn } from './images.ts';

const omp = project({ COMPOSE_PROFILES: 'monitoring' });
beforeAll(() => standIn('prometheus'));
afterAll(omp.end);

const ask = async <Data>(path: string): Promise<Data> =>
  ((await (await fetch(`http://127.0.0.1:9090/api/v1/${path}`)).json()) as { data: Data }).data;

it('Prometheus finds and scrapes the gateway, and accepts the rules', async () => {
  // As docker-compose.yml says of a clone that only its owner may read.
  await omp.shell('chmod -R a+rX deploy/monitoring');
  // Grafana's packages are not to be had.
  await omp.compose('up', '--detach', '--wait', 'gateway', 'prometheus');
  await eventually(async () => {
    const { result } = await ask<{ result: { value: [number, string] }[] }>('query?query=up');
    expect(result.map(({ value }) => value[1])).toEqual(['1']);
  });
  const { groups } = await ask<{ groups: { rules: { health: string }[] }[] }>('rules');
  const health = () => groups.flatMap(({ rules }) => rules.map((rule) => rule.health));
  expect(health().length).toBeGreaterThan(5);
  expect(health()).not.toContain('err');
});
