import { describe, expect } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import { ERRORS, type WireMemory } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

export const batchSuite = (subject: GetSubject, admit: Admit) =>
  describe('batch', () => {
    const test = testOf(subject);
    type Results = Awaited<ReturnType<ReturnType<GetSubject>['client']['batch']>>;
    const added = (results: Results): WireMemory[] => results.flatMap(({ memory }) => memory ?? []);
    const rejected = (code: keyof typeof ERRORS) => ({
      error: expect.objectContaining({ code, type: ERRORS[code].type, message: expect.stringMatching(/\S/) }),
    });
    const stored = async (user_id: string) => (await subject().client.list({ user_id, limit: 500 })).items;

    test('[Decision 35] adds all, in the order of the request, as single adds would', async (need) => {
      need('list', 'created_at');
      const user_id = freshUser();
      const contents = Array.from({ length: 100 }, (_, i) => `number ${i}`);
      const memories = added(await subject().client.batch(contents.map((content) => ({ user_id, content }))));
      expect(memories.map(({ content }) => content)).toEqual(contents);
      // Random ids of mapped tables do not continue the order within a millisecond.
      const listed = await stored(user_id);
      if (subject().ids === undefined) expect(listed).toEqual(memories.toReversed());
      expect(new Set(listed)).toEqual(new Set(memories));
      const single = await subject().client.add({ user_id, content: 'number 0' });
      const { id, created_at, updated_at } = single;
      expect({ ...memories[0], id, created_at, updated_at }).toEqual(single);
    });

    test('[Decision 35] stores every field, and search finds each', async (need) => {
      need('search', 'scope', 'tags', 'source', 'confidence', 'valid_from', 'supersedes', 'extensions');
      const [one, other] = [freshUser(), freshUser()];
      const full = {
        user_id: one,
        content: 'zanzibar "quokka", {\\ ☕}',
        scope: 'a/b',
        tags: ['t', 'omp:scope:x', 'a"b\\c,{}', 'NULL', ' '],
        source: { app: 'app', type: 'explicit', ref: 'ref' },
        confidence: 0.25,
        valid_from: '2024-01-01T00:00:00.000Z',
        valid_to: '2999-01-01T00:00:00.000Z',
        supersedes: ['mem_old', '{}'],
        'x-own': { deep: [1, null, { a: '"b"\\' }] },
      };
      const given = [full, { user_id: other, content: 'marmalade umbrella' }, { user_id: one, content: 'NULL' }];
      const memories = added(await subject().client.batch(given));
      expect(memories).toMatchObject(given);
      for (const memory of memories) {
        expect(await subject().client.get(memory.id)).toEqual(memory);
        const [hit] = await subject().client.search({ user_id: memory.user_id, q: memory.content });
        expect(hit?.memory.id).toBe(memory.id);
      }
    });

    test('[Decision 35] invalid and denied memories have their errors, and the others are added', async (need) => {
      need('list', 'scopes');
      const [mine, foreign] = [freshUser(), freshUser()];
      const client = admit({ users: [mine], grants: ['write:a/*'] });
      const results = await client.batch([
        { user_id: mine, content: 'first', scope: 'a/b' },
        { user_id: mine, content: ' ', scope: 'a/b' },
        { user_id: foreign, content: 'x', scope: 'a/b' },
        { user_id: mine, content: 'x', scope: 'b' },
        'nothing',
        { user_id: mine, content: 'last', scope: 'a/c' },
      ]);
      const memory = (content: string) => ({ memory: expect.objectContaining({ content }) });
      expect(results).toEqual([
        memory('first'),
        rejected('invalid_request'),
        rejected('scope_denied'),
        rejected('scope_denied'),
        rejected('invalid_request'),
        memory('last'),
      ]);
      expect((await stored(mine)).map(({ content }) => content)).toEqual(['last', 'first']);
      expect(await stored(foreign)).toEqual([]);
    });

    test('[Decision 35] what the backend cannot store has its error', async () => {
      const { max_content_length: max, scopes } = subject().capabilities.features;
      const user_id = freshUser();
      const bad =
        scopes === 'none'
          ? { scope: 'a' }
          : { content: 'x'.repeat((max ?? 0) + 1), ...(max === null && { user_id: 5 }) };
      const good = { user_id, content: 'stored' };
      const [first, second, third] = await subject().client.batch([good, { ...good, ...bad }, good]);
      expect(second).toEqual(rejected(scopes === 'none' ? 'unsupported_capability' : 'invalid_request'));
      for (const { memory } of [first ?? {}, third ?? {}]) {
        expect(await subject().client.get(memory?.id ?? '')).toEqual(memory);
      }
    });

    test('[Decision 35] [Decision 20] a repeated batch gets the same results and adds nothing', async (need) => {
      need('idempotency', 'list', 'update');
      const client = admit({});
      const user_id = freshUser();
      const batch = [
        { user_id, content: 'one', 'x-a': [1] },
        { user_id, content: '' },
        { user_id, content: 'two' },
      ];
      const first = await client.batch(batch, 'k');
      expect(first.map(({ memory }) => memory?.content)).toEqual(['one', undefined, 'two']);
      await subject().client.update(first[0]?.memory?.id ?? '', { content: 'changed' });
      const again = await Promise.all(Array.from({ length: 5 }, () => client.batch(batch, 'k')));
      for (const results of again) expect(results).toEqual(first);
      expect((await stored(user_id)).map(({ content }) => content)).toEqual(['two', 'changed']);
    });

    test('[Decision 35] [Decision 20] a key belongs to one batch', async (need) => {
      need('idempotency', 'list');
      const client = admit({});
      const user_id = freshUser();
      const [a, b, bad] = [
        { user_id, content: 'a' },
        { user_id, content: 'b' },
        { user_id, content: '' },
      ];
      await client.batch([bad, a], 'k');
      const others = [[bad, b], [a], [a, a], [bad, a, b], [{ user_id, content: ' ' }, a], [b]];
      for (const memories of others) {
        const reply = await client.tell('POST', '/memories/batch', { memories }, { 'idempotency-key': 'k' });
        expectError(reply, 'invalid_request');
      }
      // A single add has its own keys, and so has every caller.
      expect((await client.tell('POST', '/memories', a, { 'idempotency-key': 'k' })).status).toBe(201);
      expect(added(await admit({}).batch([b], 'k'))).toHaveLength(1);
      expect((await stored(user_id)).map(({ content }) => content)).toEqual(['b', 'a', 'a']);
    });

    test('[Decision 35] [Decision 20] of concurrent batches with one key, one adds, and all get its results', async (need) => {
      need('idempotency', 'list');
      const client = admit({});
      const user_id = freshUser();
      const batch = Array.from({ length: 12 }, (_, i) => ({ user_id, content: `number ${i}` }));
      const all = await Promise.all(Array.from({ length: 8 }, () => client.batch(batch, 'k')));
      for (const results of all) expect(results).toEqual(all[0]);
      expect(await stored(user_id)).toEqual(added(all[0] ?? []).toReversed());
    });

    test('[Decision 35] [Decision 11] the audit log has an entry of each memory', async (need) => {
      need('audit', 'idempotency', 'scopes');
      const user_id = freshUser();
      const client = admit({ app: 'batcher', grants: ['write:a/*', 'read:*'] });
      const batch = ['a/b', 'b', 'a/c'].map((scope) => ({ user_id, content: 'x', scope }));
      const results = await client.batch(batch, 'k');
      expect(await client.batch(batch, 'k')).toEqual(results);
      const entries = (await subject().client.audit({ user_id, app: 'batcher' })).map(
        ({ action, memory_id, scope, outcome }) => ({ action, memory_id, scope, outcome }),
      );
      const due = results.map(({ memory, error }, i) => ({
        action: 'add',
        memory_id: memory?.id ?? null,
        scope: batch[i]?.scope,
        outcome: error?.code ?? 'ok',
      }));
      expect(entries).toHaveLength(6);
      expect(entries).toEqual(expect.arrayContaining(due));
      expect(entries.filter(({ outcome }) => outcome === 'ok')).toHaveLength(4);
    });
  });
