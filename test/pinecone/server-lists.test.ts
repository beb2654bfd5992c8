import { Pinecone as Sdk } from '@pinecone-database/pinecone';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

let server: Pinecone;
beforeAll(async () => {
  server = await startPinecone({ dimension: 1 });
});
afterAll(() => server.close());

const put = (namespace: string, ids: readonly string[]) =>
  post(server, '/vectors/upsert', { vectors: ids.map((id) => ({ id, values: [1] })), namespace });
const remove = (namespace: string, ids: readonly string[]) => post(server, '/vectors/delete', { ids, namespace });

const listing = (asked: Readonly<Record<string, string>>) => ask(server, `/vectors/list?${new URLSearchParams(asked)}`);
interface Page {
  readonly vectors: { readonly id: string }[];
  readonly pagination?: { readonly next: string };
}
const list = async (asked: Readonly<Record<string, string>>) => {
  const { status, body } = await listing(asked);
  expect(status).toBe(200);
  const { vectors, pagination } = body as Page;
  return { ids: vectors.map(({ id }) => id), next: pagination?.next };
};

/** Bytewise, whatever JavaScript's own order. */
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

describe('list', () => {
  it('is sorted by id in "C" collation, and a prefix includes the id that equals it', async () => {
    await put('sorted', ['b', 'a10', 'a', 'B', 'a2', 'a#', '~']);
    expect((await list({ namespace: 'sorted' })).ids).toEqual(['B', 'a', 'a#', 'a10', 'a2', 'b', '~']);
    expect((await list({ namespace: 'sorted', prefix: 'a' })).ids).toEqual(['a', 'a#', 'a10', 'a2']);
    expect((await list({ namespace: 'sorted', prefix: 'zz' })).ids).toEqual([]);
  });

  it('gives 100 ids unless told, with "pagination" absent on the last page', async () => {
    const ids = Array.from({ length: 200 }, (_, i) => `${i}`).sort(byBytes);
    await put('pages', ids);
    const first = await list({ namespace: 'pages' });
    const second = await list({ namespace: 'pages', paginationToken: first.next ?? '' });
    expect([...first.ids, ...second.ids]).toEqual(ids);
    expect(first.ids).toHaveLength(100);
    expect(second.next).toBeUndefined();
  });

  it("pages as Pinecone's own tests say: prefix 99 of 1000, five at a time", async () => {
    const index = new Sdk({ apiKey: 'key' }).index({ host: server.url, namespace: 'thousand' });
    await index.upsert({ records: Array.from({ length: 1000 }, (_, i) => ({ id: `${i}`, values: [1] })) });
    const pages: string[] = [];
    let paginationToken: string | undefined;
    do {
      const page = await index.listPaginated({ prefix: '99', limit: 5, paginationToken });
      pages.push((page.vectors ?? []).map(({ id }) => id).join());
      paginationToken = page.pagination?.next;
    } while (paginationToken);
    expect(pages).toEqual(['99,990,991,992,993', '994,995,996,997,998', '999']);
  });

  it('takes limits of 1 to 100', async () => {
    for (const limit of ['0', '-1', '101']) {
      expect(await listing({ namespace: 'pages', limit })).toMatchObject({
        status: 400,
        body: refused('limit must be between 1 and 100'),
      });
    }
    expect((await list({ namespace: 'pages', limit: '1' })).ids).toEqual(['0']);
    expect((await list({ namespace: 'pages', limit: '100' })).ids).toHaveLength(100);
  });

  it('refuses a prefix with spaces', async () => {
    expect(await listing({ namespace: 'pages', prefix: 'a b' })).toMatchObject({ status: 400 });
  });

  it('always shows what was there throughout, in order and once, whatever comes and goes between pages', async () => {
    const id = fc.stringMatching(/^[ab]{1,4}$/);
    const change = fc.record({ put: fc.array(id, { maxLength: 3 }), gone: fc.array(id, { maxLength: 3 }) });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(id, { minLength: 1 }),
        fc.array(change),
        fc.nat(4),
        async (ids, changes, size) => {
          run += 1;
          const asked = { namespace: `run${run}`, prefix: 'a', limit: `${size + 1}` };
          await put(asked.namespace, ids);
          const seen: string[] = [];
          let kept = ids.filter((one) => one.startsWith('a'));
          let next: string | undefined;
          let turn = 0;
          do {
            const page = await list(next === undefined ? asked : { ...asked, paginationToken: next });
            seen.push(...page.ids);
            next = page.next;
            const { put: put_, gone } = changes[turn] ?? { put: [], gone: [] };
            turn += 1;
            if (gone.length > 0) await remove(asked.namespace, gone);
            if (put_.length > 0) await put(asked.namespace, put_);
            kept = kept.filter((one) => !gone.includes(one));
          } while (next !== undefined);
          expect(seen).toEqual([...new Set(seen)].sort(byBytes));
          expect(seen).toEqual(expect.arrayContaining(kept));
          expect(seen.every((one) => one.startsWith('a'))).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('a pagination token', () => {
  it('is made of the last id and what was asked for', async () => {
    const { next = '' } = await list({ namespace: 'pages', prefix: '1', limit: '2' });
    expect(JSON.parse(Buffer.from(next, 'base64').toString())).toEqual({
      skip_past: '10',
      prefix: '1',
      namespace: 'pages',
    });
  });

  it('is a 400 when it is malformed, or made for another prefix or namespace', async () => {
    await put('other', ['1', '10', '11']);
    const asked = { namespace: 'pages', prefix: '1', limit: '2' };
    const { next = '' } = await list(asked);
    expect((await list({ ...asked, paginationToken: next })).ids).toEqual(['100', '101']);
    for (const wrong of [
      { ...asked, paginationToken: 'nonsense' },
      { ...asked, paginationToken: '' },
      { ...asked, paginationToken: Buffer.from('null').toString('base64') },
      { ...asked, paginationToken: Buffer.from('{"skip_past":1,"prefix":"1","namespace":"pages"}').toString('base64') },
      { ...asked, paginationToken: next, prefix: '10' },
      { ...asked, paginationToken: next, namespace: 'other' },
    ]) {
      expect(await listing(wrong)).toMatchObject({ status: 400, body: refused('Invalid pagination token') });
    }
  });
});
