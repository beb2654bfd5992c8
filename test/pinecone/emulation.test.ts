import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { globMatcher } from '#toolbox';
import { expectError } from '../support/expect-error.ts';
import { openPineconeSubject, type PineconeSubject } from '../support/pinecone-server.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';

const MAX_SCAN = 60;

/** Scopes are written as tags: what Pinecone filters, what the gateway looks at, and where it stops. */
describe('scopes on Pinecone', () => {
  let subject: PineconeSubject;
  beforeAll(async () => {
    subject = await openPineconeSubject({ lagWrites: 2 }, { max_scan: MAX_SCAN }, { mode: 'vector' });
  });
  afterAll(() => subject?.close());

  /** A user with one memory in each of these scopes, oldest first. */
  const store = async (scopes: readonly (string | null)[]) => {
    const user_id = freshUser();
    const added: WireMemory[] = [];
    for (const [number, scope] of scopes.entries()) {
      added.push(await subject.client.add({ user_id, scope, content: `note ${number}` }));
    }
    return { user_id, newestFirst: added.reverse() };
  };
  const hay = (rows: number): string[] => Array.from({ length: rows }, (_, row) => `hay/${row}`);
  const found = async (query: { user_id: string; scope: string; limit?: number }) =>
    (await subject.client.search({ q: 'note', ...query })).map(({ memory }) => memory.scope).sort();
  const asked = async (work: () => Promise<unknown>) => {
    await subject.pinecone.resetCalls();
    await work();
    return subject.pinecone.calls();
  };
  const scopesOf = (items: readonly WireMemory[]) => items.map(({ scope }) => scope);

  it('[SPEC Capabilities features.scopes] are tags, one for every ancestor', async () => {
    expect(subject.capabilities.features.scopes).toBe('tags');
    const { user_id, newestFirst } = await store(['a/b/c']);
    const { client, pinecone } = subject;
    const { id } = newestFirst[0] as WireMemory;
    await client.update(id, { tags: ['own', 'omp:scope:posing'] });
    const { metadata } = (await pinecone.records('memories'))[id] ?? {};
    expect(metadata?.tags).toEqual(
      expect.arrayContaining(['own', 'omp:tag:omp:scope:posing', 'omp:under:a', 'omp:under:a/b', 'omp:scope:a/b/c']),
    );
    expect(await client.get(id)).toMatchObject({ scope: 'a/b/c', tags: ['own', 'omp:scope:posing'] });
    expect(await found({ user_id, scope: 'posing' })).toEqual([]);
  });

  it('[SPEC GET /memories/search scope] are filtered by Pinecone itself as far as they are whole segments', async () => {
    const { user_id } = await store(['in/x', 'in/x/y', ...hay(30), 'inner/x', 'in', null]);
    const calls = await asked(async () => {
      expect(await found({ user_id, scope: 'in/' })).toEqual(['in/x', 'in/x/y']);
    });
    expect(calls.map(({ operation }) => operation)).toEqual(['query']);
    expect(JSON.stringify(calls[0]?.body)).toContain('"omp:under:in"');
    // The rest of a prefix is looked at here.
    expect(await found({ user_id, scope: 'in/x/' })).toEqual(['in/x/y']);
    expect(await found({ user_id, scope: 'in' })).toEqual(['in', 'in/x', 'in/x/y', 'inner/x']);
  });

  it('[SPEC GET /memories/search scope] are found also where everything else ranks before them', async () => {
    const { user_id } = await store([...hay(150), 'needle/1', 'needle/2']);
    const { client } = subject;
    // Another text than all others have: it shares nothing with the question.
    for (const scope of ['needle/3', 'nebula']) await client.add({ user_id, scope, content: 'zzz' });
    for (const limit of [3, 5, 100]) {
      expect(await found({ user_id, scope: 'need', limit })).toEqual(['needle/1', 'needle/2', 'needle/3']);
      expect(await found({ user_id, scope: 'neb', limit })).toEqual(['nebula']);
    }
  });

  it('[SPEC GET /memories scope] [SPEC GET /memories pagination] are listed by any glob, in full pages', async () => {
    const names = ['a/x', 'a/b/x', 'ab/x', 'b/a', 'a', 'c/d/e', 'needle'];
    const { user_id, newestFirst } = await store(Array.from({ length: 55 }, (_, row) => names[row % 7] ?? null));
    for (const scope of ['a*', 'a/*', '*/x', 'a/?/x', '*e*', 'needl?', '?/*']) {
      const due = newestFirst.filter((memory) => globMatcher(scope)(memory.scope ?? ''));
      expect(due.length).toBeGreaterThan(5);
      const pages: WireMemory[][] = [];
      let cursor: string | undefined;
      do {
        const page = await subject.client.list({ user_id, scope, limit: 5, cursor });
        pages.push([...page.items]);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
      expect(pages.flat(), scope).toEqual(due);
      expect(pages.map(({ length }) => length).slice(0, -1)).toEqual(Array(pages.length - 1).fill(5));
    }
  });

  describe('that take reading more memories than the gateway may', () => {
    const rows = MAX_SCAN + 20;
    let user_id: string;
    let newestFirst: WireMemory[];
    beforeAll(async () => {
      ({ user_id, newestFirst } = await store(['needle/1', ...hay(rows), 'needle/2']));
    });
    const list = (query: object) => subject.client.ask('/memories', { user_id, ...query });
    const items = async (query: object) => scopesOf((await subject.client.list({ user_id, ...query })).items);

    it.for(['needl*', '*dle/1', 'needle/*', 'needle/1'])(
      '[SPEC Errors invalid_request] are refused, never answered in part: a list of %s',
      async (scope) => {
        const error = expectError(await list({ scope }), 'invalid_request');
        expect(error.message).toMatch(/too (many|few)/);
        expect(error.message).toMatch(/narrow the list by since and until/);
      },
    );

    it('[SPEC GET /memories since] [SPEC GET /memories until] are listed where the times leave few enough', async () => {
      const oldest = newestFirst.at(-30)?.created_at ?? '';
      for (const scope of ['needl*', '*dle/1', 'needle/*', 'needle/1']) {
        expect(await items({ scope, until: oldest })).toEqual(['needle/1']);
        expect(await items({ scope, since: oldest })).toEqual(scope.endsWith('1') ? [] : ['needle/2']);
      }
    });

    it('[SPEC GET /memories limit] are listed where the page is full before', async () => {
      expect(await items({ scope: 'ha*', limit: 10 })).toEqual(hay(rows).reverse().slice(0, 10));
    });

    it('[SPEC GET /memories/search scope] are searched, for there the index helps', async () => {
      expect(await found({ user_id, scope: 'need' })).toEqual(['needle/1', 'needle/2']);
      expect(await found({ user_id, scope: 'needle/' })).toEqual(['needle/1', 'needle/2']);
    });

    it('[SPEC GET /memories] do not concern a list of everything', async () => {
      expect(await items({ limit: 500 })).toEqual(scopesOf(newestFirst));
    });
  });

  it('[SPEC GET /memories scope] are listed where the memories end exactly there', async () => {
    const { user_id } = await store(['needle/1', ...hay(MAX_SCAN - 1)]);
    for (const scope of ['needl*', 'needle/*', 'needle/1']) {
      expect(scopesOf((await subject.client.list({ user_id, scope })).items)).toEqual(['needle/1']);
    }
    await subject.client.add({ user_id, scope: 'hay/last', content: 'one more' });
    for (const scope of ['needl*', 'needle/*', 'needle/1']) {
      expectError(await subject.client.ask('/memories', { user_id, scope }), 'invalid_request');
    }
  });
});
