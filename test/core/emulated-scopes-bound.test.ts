import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ListQuery, Memory, Provider } from '#contract';
import { recordBytes, upToBytes } from '#toolbox';
import { emulateScopes } from '../../src/core/emulated-scopes.ts';
import { call, listOf, memoryOf, openMemory, searchFor } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';

type Full = Required<Provider>;

/**
 * The memory provider without scopes, behind the emulation, which may read so many records for one page. Tells how many
 * it read for the last page, and holds one record in each of these scopes, oldest first.
 */
const openBounded = async (max_list_scan: number | null, scopes: readonly string[]) => {
  const inner = (await openMemory('none')) as Full;
  let sizes: number[] = [];
  const provider = storeOf(
    emulateScopes({
      ...inner,
      capabilities: { ...inner.capabilities, max_list_scan },
      list: async (query, by) => {
        const batch = await inner.list(query, by);
        sizes.push(batch.length);
        return batch;
      },
    }),
  );
  const records: Memory[] = [];
  for (const scope of scopes) records.unshift(await provider.add({ input: memoryOf('u', 'note', { scope }) }, call));
  const page = async (query: Partial<ListQuery>) => {
    sizes = [];
    const given = await provider.list(listOf('u', query), call);
    return given.map(({ scope }) => scope);
  };
  const list = (query: Partial<ListQuery>) => provider.list(listOf('u', query), call);
  return { page, list, records, read: () => sizes.reduce((sum, size) => sum + size, 0) };
};
const hay = (rows: number): string[] => Array.from({ length: rows }, () => 'hay');
const REJECTED = { code: 'invalid_request', message: expect.stringMatching(/^scope: too many .* since and until$/) };

describe('a list that the gateway filters reads at most max_list_scan memories', () => {
  const ADVICE = /^scope: too many .* since and until$/;
  const ALLOWED = /outside the allowed scopes; add a scope, or narrow the list by since and until$/;
  it.each<[string, readonly string[], Partial<ListQuery>, readonly string[] | RegExp]>([
    ['is rejected if the page is not full by then', ['needle/x', ...hay(12)], { scope: 'needl*' }, ADVICE],
    ['mentions the allowed scopes without a scope', ['needle/x', ...hay(12)], { within: ['needl*'] }, ALLOWED],
    ['succeeds if the provider filters', ['needle/x', ...hay(12)], { scope: 'needle/*' }, ['needle/x']],
    ['succeeds with a scope', ['needle/x', ...hay(12)], { within: ['needl*'], scope: 'needle/*' }, ['needle/x']],
    ['succeeds if the memories end there', ['needle', ...hay(11)], { scope: 'needl?' }, ['needle']],
    [
      'succeeds if they end there, with a small page',
      ['needle', ...hay(11)],
      { scope: 'needl?', limit: 3 },
      ['needle'],
    ],
    ['succeeds if there is none', ['needle', ...hay(11)], { scope: 'nothing?' }, []],
    [
      'succeeds if the page is full there',
      [...hay(20), 'needle', ...hay(11)],
      { scope: 'needl?', limit: 1 },
      ['needle'],
    ],
    ['is rejected if it is not', [...hay(20), 'needle', ...hay(11)], { scope: 'needl?', limit: 2 }, ADVICE],
    ['is not limited without a scope', hay(20), {}, hay(20)],
    ['is not limited by an exact scope', hay(20), { scope: 'hay' }, hay(20)],
  ])('%s', async (_, scopes, query, expected) => {
    const { page, read } = await openBounded(12, scopes);
    if (expected instanceof RegExp) {
      const message = expect.stringMatching(expected);
      await expect(page(query)).rejects.toMatchObject({ code: 'invalid_request', message });
    } else expect(await page(query)).toEqual(expected);
    if (query.scope === 'needle/*') expect(read()).toBe(1);
  });

  it('counted from the start of the page', async () => {
    const { page, records } = await openBounded(12, ['needle', ...hay(20)]);
    const { created_at, id } = records[8] as Memory;
    expect(await page({ scope: 'needl?', after: { created_at, id } })).toEqual(['needle']);
    await expect(page({ scope: 'needl?' })).rejects.toMatchObject(REJECTED);
  });
});

it('a filtered list is either exact or rejected, and rejected only if the result cannot be known', async () => {
  const drawn = fc.record({
    scopes: fc.array(fc.constantFrom('needle', 'hay', 'hay', 'hay'), { maxLength: 60 }),
    limit: fc.integer({ min: 1, max: 12 }),
    most: fc.option(fc.integer({ min: 1, max: 70 }), { freq: 5 }),
  });
  const seen = { exact: 0, rejected: 0 };
  const property = fc.asyncProperty(drawn, async ({ scopes, limit, most }) => {
    const { page, read } = await openBounded(most, scopes);
    // One more than may be read tells whether the records end there.
    const reach = most === null ? scopes.length : most + 1;
    const needles = (rows: readonly string[]) => rows.filter((scope) => scope === 'needle').slice(0, limit);
    const within = needles(scopes.slice(-reach));
    if (within.length === limit || scopes.length < reach || most === null) {
      expect(await page({ scope: 'needl?', limit })).toEqual(needles(scopes));
      seen.exact++;
    } else {
      await expect(page({ scope: 'needl?', limit })).rejects.toMatchObject(REJECTED);
      seen.rejected++;
    }
    expect(read()).toBeLessThanOrEqual(reach);
  });
  await fc.assert(property, { numRuns: 300, seed: 20_250_601 });
  expect(Math.min(seen.exact, seen.rejected)).toBeGreaterThan(20);
});

describe('[Decision 29] a byte limit', () => {
  it('of a list leaves full pages, for any size of the scope tags', async () => {
    const scopes = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? `needle/${i}/${'deep/'.repeat(8)}end` : 'hay'));
    const { list, page: scopesOf, records } = await openBounded(null, scopes);
    for (const query of [{}, { scope: 'needl*' }, { scope: 'needle/*' }, { within: ['needle/*', 'h?y'] }]) {
      const all = await scopesOf({ ...query, limit: 50 });
      const seen: (string | null)[] = [];
      let after: Memory | undefined;
      do {
        const page: Memory[] = await list({ ...query, limit: 50, max_bytes: 100, ...(after && { after }) });
        const cut = page.length > 1 && page.reduce((sum, record) => sum + recordBytes(record), 0) > 100;
        const kept = cut ? page.slice(0, -1) : page;
        seen.push(...kept.map(({ scope }) => scope));
        after = cut ? kept.at(-1) : undefined;
      } while (after);
      expect(seen).toEqual(all);
      expect(seen.length).toBeLessThanOrEqual(records.length);
    }
  });

  it('of a search grows up to 64 MiB, then the search is rejected', async () => {
    const inner = (await openMemory('none')) as Full;
    const added = await storeOf(inner).add({ input: memoryOf('u', 'a'.repeat(1_000_000), { tags: ['hay'] }) }, call);
    const asked: number[] = [];
    const provider = emulateScopes({
      ...inner,
      search: async ({ limit, max_bytes }) => {
        asked.push(max_bytes);
        const hits = Array.from({ length: limit }, () => ({ memory: added, score: 0.5 }));
        return upToBytes(hits, max_bytes, ({ memory }) => memory);
      },
    }) as Full;
    const wanted = searchFor('u', 'q', { scope: 'needle', limit: 100, max_bytes: 4 * 1024 * 1024 });
    await expect(provider.search(wanted, call)).rejects.toMatchObject({ code: 'invalid_request' });
    expect(asked).toEqual([4, 16, 64].map((mebibytes) => mebibytes * 1024 * 1024));
    // What is not refined ends where the bytes do.
    expect(await provider.search(searchFor('u', 'q', { limit: 100, max_bytes: 4_500_000 }), call)).toHaveLength(5);
  });
});
