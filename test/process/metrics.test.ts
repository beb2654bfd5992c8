import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freshUser } from '../support/subject.ts';
import { startMeasuredGateway, temporaryFolder, watch } from './gateway.ts';
import { freePort } from './postgres-cluster.ts';

const REQUESTS = 'omp_http_request_duration_seconds_count';
const installed = (program: string): boolean => spawnSync(program, ['--version']).status === 0;

test('promtool accepts the metrics of a gateway', async ({ skip }) => {
  skip(!installed('promtool'), 'promtool is not installed');
  const { client, text } = await startMeasuredGateway();
  const user_id = freshUser();
  await client.add({ user_id, content: 'x' });
  await client.search({ user_id, q: 'x' });
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: await text(),
    encoding: 'utf8',
  });
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
});

test('[Decision 33] the metrics port serves no memories, and the main port the same metrics', async () => {
  const { client, metricsUrl } = await startMeasuredGateway({ OMP_PROVIDER: 'memory' });
  expect((await client.ask('/metrics')).text).toContain('omp_build_info{');
  expect((await fetch(new URL('/memories?user_id=x', metricsUrl))).status).toBe(404);
  expect((await fetch(new URL('/livez', metricsUrl))).status).toBe(200);
});

test('Prometheus scrapes the number of requests', async ({ skip }) => {
  skip(!installed('prometheus'), 'prometheus is not installed');
  const { client, metricsUrl } = await startMeasuredGateway({ OMP_PROVIDER: 'memory' });
  for (let i = 0; i < 17; i++) await client.ask('/memories/some-id');

  const folder = temporaryFolder();
  const port = await freePort();
  const scrape_configs = [{ job_name: 'omp-gateway', static_configs: [{ targets: [new URL(metricsUrl).host] }] }];
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs }));
  const options = [
    '--config.file=prometheus.yml',
    '--storage.tsdb.path=data',
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  watch(spawn('prometheus', options, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] }));
  const ask = async (query: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`);
    const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
    return data.result.map(({ value: [, value] }) => value);
  };
  await eventually(async () => expect(await ask('up{job="omp-gateway"}')).toEqual(['1']));
  const counted = `sum(${REQUESTS}{route="/memories/:id",status="404"})`;
  await eventually(async () => expect(await ask(counted)).toEqual(['17']));
});
