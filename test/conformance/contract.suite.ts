import { describe, expect } from 'vitest';
import { Call, type Vector } from '#contract';
import { freshUser } from '../support/gateway.ts';
import { type GetSubject, testOf } from './subject.ts';

const ALL = { tags: [], within: null, limit: 50, max_bytes: 1_000_000 } as const;

/** What no client can see of a provider by itself: bounds that the gateway applies again, and what it asks with several stores. */
export const contractSuite = (subject: GetSubject) =>
  describe('the contract', () => {
    const test = testOf(subject);
    const call = new Call('contract');
    const vectorOf = async (text: string): Promise<Vector> => {
      const { embedder } = subject();
      return (await embedder?.embed([text], 'query', call))?.[0] ?? null;
    };
    const searchFor = async (user_id: string, text: string) => ({
      ...ALL,
      user_id,
      text,
      vector: await vectorOf(text),
    });

    test('[Decision 48] what a mount hides is absent from every query, and counts for no rarity', async (need) => {
      need('add', 'native_scopes');
      const { raw, client, without } = subject();
      const user_id = freshUser();
      const source = without?.includes('source') ? undefined : { ref: 'talk' };
      const add = (scope: string | undefined, content = 'green tea') =>
        client.add({ user_id, content, ...(scope !== undefined && { scope, source }) });
      const shown = [await add(undefined), await add('hidebeside'), await add('open')].map(({ id }) => id).sort();
      const hidden = [await add('hide', 'black tea'), await add('hide/below'), await add('hide/below')];
      const outside = { within: null, outside: ['hide'] };
      const idsOf = (all: readonly { readonly id: string }[] = []) => all.map(({ id }) => id).sort();
      if (raw.list) expect(idsOf(await raw.list({ ...ALL, user_id, ...outside }, call))).toEqual(shown);
      if (raw.search) {
        const query = await searchFor(user_id, 'green tea');
        const hits = await raw.search({ ...query, ...outside }, call);
        expect(idsOf(hits.map(({ memory }) => memory))).toEqual(shown);
        // As if it held nothing else.
        expect(hits).toEqual(await raw.search({ ...query, within: ['', 'hidebeside', 'open'] }, call));
      }
      for (const { id } of hidden) {
        const ref = { id, users: [user_id], ...outside };
        expect(await raw.get(ref, call)).toBeUndefined();
        const change = { ref, patch: { content: 'changed' }, vector: await vectorOf('changed') };
        if (raw.update) expect(await raw.update(change, call)).toBeUndefined();
        if (raw.delete) expect(await raw.delete(ref, call)).toBe(false);
        if (raw.versions) expect(await raw.versions.list({ ref, limit: 5, max_bytes: 1e6 }, call)).toBeUndefined();
        expect((await client.get(id)).content).toMatch(/tea$/);
      }
      const ids = hidden.map(({ id }) => id);
      const near = { user_id, ids, max_bytes: 1e6, ...outside };
      if (raw.neighbours) expect(await raw.neighbours(near, call)).toEqual([]);
      const count = shown.length;
      if (raw.userStats) expect(await raw.userStats({ user_id, ...outside, limit: 9 }, call)).toMatchObject({ count });
      const users = { users: [user_id], ...outside, limit: 9 };
      if (raw.users) expect((await raw.users(users, call)).items).toMatchObject([{ user_id, count }]);
    });

    test('[Decision 29] max_bytes ends a list and a search at the first memory that exceeds it', async (need) => {
      need('add');
      const { raw, client } = subject();
      const user_id = freshUser();
      for (let i = 0; i < 4; i++) await client.add({ user_id, content: `green tea ${i}` });
      const few = { max_bytes: 1 };
      const query = await searchFor(user_id, 'green tea');
      // The first one always fits.
      for (const found of [
        await raw.list?.({ ...ALL, user_id, ...few }, call),
        await raw.search?.({ ...query, ...few }, call),
      ])
        if (found) expect([1, 2]).toContain(found.length);
    });

    test('[Decision 10] contents above max_content_bytes are no hits, and count for the rarity of words', async (need) => {
      need('add', 'search');
      const { raw, client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'green and black tea' });
      // 60 characters of two bytes.
      await client.add({ user_id, content: `tea ${'é'.repeat(60)}` });
      const query = await searchFor(user_id, 'green tea');
      const all = (await raw.search?.(query, call)) ?? [];
      const short = await raw.search?.({ ...query, max_content_bytes: 100 }, call);
      expect(short).toEqual(all.filter(({ memory }) => memory.id === id));
      expect(short).toHaveLength(1);
    });

    test('[Decision 62] holdings count what there is, before an erase and after', async (need) => {
      need('add', 'erase', 'holdings');
      const { raw, client } = subject();
      const user_id = freshUser();
      for (const content of ['green tea', 'black tea']) await client.add({ user_id, content });
      expect(await raw.holdings?.({ user_id }, call)).toMatchObject({ memories: 2 });
      await client.erase(user_id);
      expect(await raw.holdings?.({ user_id }, call)).toMatchObject({ memories: 0 });
    });
  });
