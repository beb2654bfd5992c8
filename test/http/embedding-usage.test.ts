import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import type { EmbeddingUsage } from '#contract';
import { compose } from '../../src/core/compose.ts';
import { openProvider } from '../../src/registry.ts';
import { expectError } from '../support/expect-error.ts';
import { knownCallers } from '../support/known-callers.ts';
import { contextOf } from '../support/requests.ts';
import { serverForTest } from '../support/server.ts';
import { recordingLog } from '../support/subject.ts';

// No day ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() }));
afterEach(() => void vi.useRealTimers());

const DAY_MS = 86_400_000;
const dayBefore = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
const row = (fields: Partial<EmbeddingUsage> = {}): EmbeddingUsage => ({
  ...{ day: dayBefore(0), app: 'editor', model: 'm', texts: 2, tokens: 5, requests: 1 },
  ...fields,
});

/** A gateway whose embedders have used this. */
async function serve(used: readonly EmbeddingUsage[]) {
  const rows = [...used];
  const opened = await openProvider('memory', { scopes: 'native' }, contextOf({}));
  const provider = compose(opened, { embedder: undefined, log: recordingLog(), takeUsage: () => rows.splice(0) });
  onTestFinished(provider.close);
  const callers = knownCallers();
  const { client } = await serverForTest({ provider, authenticator: callers.authenticator });
  const admin = callers.admit({ grants: ['admin:*'] });
  const ask = (query = {}, headers = admin) => client.ask('/embedding-usage', query, headers);
  return { ask, client };
}

it('[Decision 63] usage of the last 30 days comes by day and caller, with sums', async () => {
  const items = [row({ app: null, tokens: 0 }), row(), row({ day: dayBefore(29) })];
  const { ask, client } = await serve([...items, row({ day: dayBefore(30) })]);
  const { status, body } = await ask();
  expect(status).toBe(200);
  expect(body).toEqual({
    since: dayBefore(29),
    until: dayBefore(0),
    counted_since: expect.stringMatching(/T.*Z$/),
    items,
    totals: { texts: 6, tokens: 10, requests: 3 },
    next_cursor: null,
  });
  const { items: older } = (await ask({ since: dayBefore(40), until: dayBefore(30) })).body as { items: unknown };
  expect(older).toEqual([row({ day: dayBefore(30) })]);
  const { body: capabilities } = await client.ask('/capabilities');
  expect(capabilities).toMatchObject({ features: { embedding_usage: true } });
});

it('[Decision 63] the sum of tokens is unknown if those of one row are', async () => {
  const { ask } = await serve([row(), row({ app: 'other', tokens: null })]);
  expect((await ask()).body).toMatchObject({ totals: { texts: 4, tokens: null, requests: 2 } });
});

it('[Decision 63] a gateway without an embedding service counts nothing', async () => {
  const callers = knownCallers();
  const { client } = await serverForTest({ authenticator: callers.authenticator });
  const reply = await client.ask('/embedding-usage', {}, callers.admit({ grants: ['admin:*'] }));
  expect(expectError(reply, 'unsupported_capability').message).toMatch(/OMP_EMBEDDER=openai/);
});

it.each(['2026-3-1', '2026-02-30', '0000-01-01', '2026-03-01T00:00:00Z', 'today', '20260301', '-', '2026-03-011'])(
  '[Decision 63] %s is no day',
  async (since) => {
    const { ask } = await serve([]);
    expectError(await ask({ since }), 'invalid_request');
    expectError(await ask({ until: since }), 'invalid_request');
  },
);

it('[Decision 63] all rows come page by page, each once, whatever the names are', async () => {
  const today = Array.from({ length: 9_999 }, (_, n) => row({ app: n === 0 ? null : `subject ${n}` }));
  // The last of a page is in the cursor.
  const long = row({ day: dayBefore(1), app: '\u0001'.repeat(256), model: '\u0001'.repeat(256) });
  const { ask } = await serve([row({ day: dayBefore(1), app: 'editor' }), long, ...today]);
  const seen: EmbeddingUsage[] = [];
  const pages: number[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { status, body, text } = await ask(cursor === undefined ? {} : { cursor });
    expect(status, text).toBe(200);
    const page = body as { items: EmbeddingUsage[]; totals: { requests: number }; next_cursor: string | null };
    expect(page.totals.requests).toBe(page.items.length);
    pages.push(page.items.length);
    seen.push(...page.items);
    cursor = page.next_cursor;
  }
  expect(pages).toEqual([10_000, 1]);
  expect(new Set(seen.map(({ day, app }) => `${day} ${app}`)).size).toBe(10_001);
  expect(seen.map(({ day }) => day)).toEqual(
    seen
      .map(({ day }) => day)
      .sort()
      .reverse(),
  );
});

it('[Decision 63] a cursor is rejected with other days', async () => {
  const { ask } = await serve(Array.from({ length: 10_001 }, (_, n) => row({ app: `${n}` })));
  const { next_cursor: cursor } = (await ask()).body as { next_cursor: string };
  expectError(await ask({ cursor, since: dayBefore(1) }), 'invalid_request');
  expectError(await ask({ cursor: `${cursor}x` }), 'invalid_request');
});
