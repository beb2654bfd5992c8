import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freshUser } from '../support/subject.ts';
import { readingOf, sumOf } from '../telemetry/exposition.ts';
import { temporaryFolder, watch } from './gateway.ts';
import { startMeasuredGateway } from './measured-gateway.ts';
import { freePort } from './postgres-cluster.ts';

const REQUESTS = 'omp_http_request_duration_seconds_count';
const installed = (program: string): boolean => spawnSync(program, ['--version']).status === 0;

test('what a gateway tells is good in the eyes of promtool', async ({ skip }) => {
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

test('the port for measures shows no memories, and the one for memories no measures', async () => {
  const { client, metricsUrl } = await startMeasuredGateway({ OMP_PROVIDER: 'memory' });
  expect((await client.ask('/metrics')).status).toBe(404);
  expect((await fetch(new URL('/memories?user_id=x', metricsUrl))).status).toBe(404);
  expect((await fetch(new URL('/livez', metricsUrl))).status).toBe(200);
});

test('Prometheus counts the requests that were made', async ({ skip }) => {
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

test('workers are counted together, also those that have ended', async () => {
  const gateway = await startMeasuredGateway({ OMP_WORKERS: '2' });
  const { client, samples, printed } = gateway;
  // Each on a connection of its own, so that both workers get some.
  const ask = () => client.ask('/memories/some-id', {}, { connection: 'close' });
  for (let i = 0; i < 40; i++) expect((await ask()).status).toBe(404);
  const counted = async () => sumOf(await samples(), REQUESTS, { route: '/memories/:id', status: '404' });
  await expect.poll(counted).toBe(40);
  const built = (await samples()).filter(({ name }) => name === 'omp_build_info');
  expect(built.map(({ value }) => value)).toEqual([1]);
  expect(readingOf(await samples(), 'omp_circuit_breaker_state', { dependency: 'postgres', state: 'closed' })).toBe(2);

  const [, pid] = /"pid":(\d+)/.exec(printed()) ?? [];
  const workers = spawnSync('pgrep', ['-P', String(gateway.child.pid)], { encoding: 'utf8' })
    .stdout.trim()
    .split('\n');
  expect(workers.length, pid).toBeGreaterThan(1);
  process.kill(Number(workers[0]), 'SIGKILL');
  await gateway.output(/"level":(40|50).*worker/);
  expect(await counted()).toBe(40);
  await expect.poll(async () => (await ask()).status).toBe(404);
  await expect.poll(counted).toBeGreaterThan(40);
});
