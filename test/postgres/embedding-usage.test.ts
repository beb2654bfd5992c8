import { expect, it } from 'vitest';
import type { EmbeddingUsage, Memory, Provider } from '#contract';
import { keepUsage } from '../../src/core/embedding-usage.ts';
import { withEmbedder } from '../../src/core/with-embedder.ts';
import { createMeter } from '../../src/embedding/meter.ts';
import { openProvider } from '../../src/registry.ts';
import { IS_CITUS, NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { contextOf } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';
import { testEmbedder } from './ingestion-subject.ts';
import { embedderOf, serverSubject } from './reembed-subject.ts';
import { call, memoryOf, refTo, storeForEach, until } from './store.ts';

const store = storeForEach();

const ALL = { since: '2020-01-01', until: '2030-12-31', limit: 1_000 };
const row = (fields: Partial<EmbeddingUsage> = {}): EmbeddingUsage => ({
  ...{ day: '2026-03-02', app: 'editor', model: 'm', texts: 1, tokens: 5, requests: 1 },
  ...fields,
});
const stored = () =>
  store.sql<EmbeddingUsage>(
    `select app, texts::int, tokens::int, requests::int from ${store.names.embeddingUsage} order by app, model`,
  );

/** The provider itself, which a gateway has around its usage. */
async function usageStore() {
  await store.open();
  const options = { url: store.url, schema: store.schema, connections: 1, ...(IS_CITUS && { distributed: 'citus' }) };
  const provider: Provider = await openProvider('postgres', options, contextOf({}));
  return { provider, usage: provider.embeddingUsage as NonNullable<Provider['embeddingUsage']> };
}

it('[Decision 63] two gateways add up in the rows of a day, and read them newest first', async () => {
  const [one, other] = [await usageStore(), await usageStore()];
  const parts = [row(), row({ app: null }), row({ day: '2026-03-03', model: 'n' }), row({ app: "o'brien, {\\}" })];
  // Many rows in different orders at once: none waits for another in a circle.
  await Promise.all(
    Array.from({ length: 6 }, (_, n) => (n % 2 ? one : other).usage.add(n % 2 ? parts : parts.toReversed(), call)),
  );
  const six = { texts: 6, tokens: 30, requests: 6 };
  expect(await one.usage.read(ALL, call)).toEqual([
    row({ day: '2026-03-03', model: 'n', ...six }),
    row({ app: null, ...six }),
    row({ app: 'editor', ...six }),
    row({ app: "o'brien, {\\}", ...six }),
  ]);
  expect(await one.usage.read({ ...ALL, since: '2026-03-03' }, call)).toHaveLength(1);
  expect(await one.usage.read({ ...ALL, until: '2026-03-02' }, call)).toHaveLength(3);
  const all = await one.usage.read(ALL, call);
  for (const [place, after] of all.entries()) {
    const [next] = await one.usage.read({ ...ALL, after, limit: 1 }, call);
    expect(next).toEqual(all[place + 1]);
  }
  await one.usage.add([row({ tokens: null })], call);
  expect(await one.usage.read(ALL, call)).toContainEqual(row({ texts: 7, tokens: null, requests: 7 }));
  await Promise.all([one.provider.close(), other.provider.close()]);
});

it('[Decision 63] what was counted is stored when the gateway closes, and is there after the next start', async () => {
  const meter = createMeter('m');
  const { provider } = await usageStore();
  const gateway = withEmbedder(provider, undefined, recordingLog(), meter.take);
  meter.sent(['editor']);
  meter.answered(['tea'], ['editor'], 7);
  await gateway.close();
  expect(await stored()).toEqual([{ app: 'editor', texts: 1, tokens: 7, requests: 1 }]);
  const again = await usageStore();
  const reader = keepUsage(() => [], again.usage, recordingLog());
  expect(await reader.read({ ...ALL, until: '9999-12-31' }, call)).toHaveLength(1);
  expect(reader.since()).toBeUndefined();
  await reader.close();
  await again.provider.close();
});

it('[Decision 63] rows are kept for 400 days', async () => {
  const { provider, usage } = await usageStore();
  const day = (before: number) => new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);
  await usage.add([row({ day: day(399) }), row({ day: day(402) })], call);
  await provider.close();
  await store.open();
  await until(async () => (await stored()).length === 1);
});

it('[Decision 63] a queued memory is embedded for the key that wrote it', async () => {
  const apps: (string | null)[] = [];
  const inner = testEmbedder();
  const embedder: typeof inner = {
    ...inner,
    embed(texts, purpose, about) {
      apps.push(about.caller.app);
      return inner.embed(texts, purpose, about);
    },
  };
  const provider = await store.open({ embedder, options: { ingestion: 'async' } });
  const add = async (extensions: object) => {
    const { id } = (await provider.add({ input: { ...memoryOf('u', 'tea'), extensions } as never }, call)) as Memory;
    await until(async () => (await provider.get(refTo(id), call))?.status === 'done');
  };
  await add({ 'x-omp-origin': { key: 'editor', via: 'http' } });
  await add({});
  expect(apps).toEqual(['editor', null]);
});

it('[Decision 63] a re-embed is stored as use by the gateway itself', async ({ skip }) => {
  skip(SERVER_URL === '' || IS_CITUS, NO_SERVER);
  const subject = await serverSubject();
  const before = await subject.open(embedderOf('old'));
  for (const text of ['tea', 'coffee']) await before.add({ input: memoryOf('u', text) }, call);
  await before.close();
  const usage = createMeter('new');
  const inner = embedderOf('new');
  await subject.reembed({
    ...inner,
    usage,
    embed(texts, purpose, about) {
      usage.answered(texts, [about.caller.app, about.caller.app], 9);
      return inner.embed(texts, purpose, about);
    },
  });
  expect(await subject.sql(`select app, model, texts::int, tokens::int from ${subject.names.embeddingUsage}`)).toEqual([
    { app: '', model: 'new', texts: 2, tokens: 9 },
  ]);
});
