import { readdirSync, readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { Services } from '../../src/core/services.ts';
import { createUserLimits } from '../../src/core/user-limits.ts';
import { createMeter } from '../../src/embedding/meter.ts';
import type { Feature, Running } from '../../src/features/feature.ts';
import { FEATURES, metricsOf, openServices, startFeatures } from '../../src/features/index.ts';
import { RETENTION } from '../../src/features/retention/retention.ts';
import { WEBHOOKS } from '../../src/features/webhooks/interface.ts';
import { openParts } from '../../src/shutdown.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { gateOn, recordingLog } from '../support/subject.ts';

const open = async () => {
  const store = storeOf(await openMemory());
  const log = recordingLog();
  const { gate } = gateOn(store, log);
  return { store, log, feed: gate.feed };
};
const OFF = loadConfig({ env: {} }).config;
const ON = loadConfig({ env: { OMP_WEBHOOK_SECRET: 'x'.repeat(32), OMP_RETENTION: '[{"days": 7}]' } }).config;

/** What began, once it is closed again. */
async function started(services: Services, running: Running): Promise<string[]> {
  const parts = openParts(running.log);
  const added = vi.spyOn(parts, 'add');
  startFeatures(services, running, parts.add);
  await parts.close();
  return added.mock.calls.map(([name]) => name);
}

it('every folder is a feature of the list, and its verbs are in the table of verbs', async () => {
  const folders = readdirSync('src/features', { withFileTypes: true }).filter((one) => one.isDirectory());
  const doors = await Promise.all(folders.map(({ name }) => import(`../../src/features/${name}/index.ts`)));
  const features = doors.flatMap((door: Record<string, Feature>) => Object.values(door));
  expect(new Set(features)).toEqual(new Set(FEATURES));
  for (const { verbs } of features) expect(VERB_TABLE).toMatchObject(verbs);
});

it('opens the services that the settings ask for, and starts and closes their background work', async () => {
  const running = await open();
  expect(openServices(OFF, running).size).toBe(0);
  const services = openServices(ON, running);
  expect([...services.keys()]).toEqual([RETENTION, WEBHOOKS]);
  expect(await started(services, running)).toEqual(['retention', 'webhooks']);
  expect(await started(openServices(OFF, running), running)).toEqual([]);
});

it('[Decision 31] closes the background work that began before that of another feature failed', async () => {
  const running = await open();
  const start = () => {
    throw new Error('no');
  };
  const services = new Map([...openServices(ON, running), [WEBHOOKS, { start }]]);
  const parts = openParts(running.log);
  const added = vi.spyOn(parts, 'add');
  expect(() => startFeatures(services, running, parts.add)).toThrow('no');
  expect(added.mock.calls.map(([name]) => name)).toEqual(['retention']);
  await parts.close();
});

it('says in the log that the store lacks what a setting needs', async () => {
  const { store, log } = await open();
  expect(openServices({ ...OFF, webhooks: ON.webhooks }, { store: { ...store, webhooks: undefined }, log }).size).toBe(
    0,
  );
  expect(log.lines).toEqual([expect.objectContaining({ message: expect.stringContaining('OMP_WEBHOOK_SECRET') })]);
});

it('[Decision 33] the metrics of features have distinct names, and are described in docs/metrics.md', async () => {
  const running = await open();
  const userLimits = createUserLimits({ memories: 1, bytes: null, adds_per_day: null, overrides: [] });
  const embedder = { ...hashingEmbedder(), usage: createMeter('m') };
  const metrics = metricsOf(openServices(ON, running), { ...running, embedder, userLimits });
  const names = metrics.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(
    expect.arrayContaining(['omp_webhook_lag_seconds', 'omp_embedding_texts_total', 'omp_user_limit_rejections_total']),
  );
  const page = readFileSync('docs/metrics.md', 'utf8');
  expect(names.filter((name) => !page.includes(`\`${name}`))).toEqual([]);
  for (const { kind, name, read } of metrics) {
    expect(name.endsWith('_total'), name).toBe(kind === 'counter');
    expect(await read(), name).toEqual(expect.any(Array));
  }
});
