import { describe, expect } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

export const freezeSuite = (subject: GetSubject, admit: Admit) =>
  describe('freeze', () => {
    const test = testOf(subject);

    test('[Decision 53] a frozen store rejects every change with 503 and a time to come back, and answers reads', async (need) => {
      need('freeze', 'update', 'delete', 'erase', 'import', 'batch');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'likes tea' });
      const key = { 'idempotency-key': crypto.randomUUID() };
      const first = await client.raw('/memories', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...key },
        body: JSON.stringify({ user_id, content: 'likes mint' }),
      });
      const before = await client.list({ user_id });
      const frozen = await client.tell('POST', '/freeze');
      try {
        expect(frozen.body).toMatchObject({ since: expect.stringMatching(/Z$/), by: 'anybody' });
        const moved = { id: 'mem_moved', user_id, content: 'x', created_at: '2025-01-01T00:00:00.000Z' };
        for (const reply of [
          await client.tell('POST', '/memories', { user_id, content: 'x' }),
          await client.tell('POST', '/memories/batch', { memories: [{ user_id, content: 'x' }] }),
          await client.tell('PATCH', client.byId(id), { content: 'x' }),
          await client.tell('PATCH', client.byId(id), { tags: ['x'] }),
          await client.tell('DELETE', client.byId(id)),
          await client.tell('DELETE', `/users/${user_id}/memories`),
          await client.tell('POST', '/import', { memories: [moved] }),
          await client.tell('POST', '/import', { memories: [{ ...moved, id }], on_conflict: 'replace' }),
        ]) {
          expect(reply.status, reply.text).toBe(503);
          expect(reply.headers.get('retry-after')).toBe('2');
          expect(reply.body).toMatchObject({ error: { code: 'provider_error', type: 'provider_error' } });
          expect(reply.text).toContain((frozen.body as { since: string }).since);
        }
        // The answer to a repeated add is read.
        const again = await client.raw('/memories', {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...key },
          body: JSON.stringify({ user_id, content: 'likes mint' }),
        });
        expect([again.status, again.body]).toEqual([201, first.body]);
        expect(await client.list({ user_id })).toEqual(before);
        expect((await client.search({ user_id, q: 'likes tea' }))[0]?.memory.id).toBe(id);
        if (subject().capabilities.features.supports_audit)
          expect((await client.ask('/audit', { user_id })).status).toBe(200);
        // It stays the same freeze.
        expect((await client.tell('POST', '/freeze')).body).toEqual(frozen.body);
        expect((await client.ask('/freeze')).body).toMatchObject(frozen.body as object);
      } finally {
        expect((await client.tell('DELETE', '/freeze')).body).toEqual(frozen.body);
      }
      expect((await client.ask('/freeze')).body).toMatchObject({ since: null, by: null });
      expect((await client.tell('DELETE', '/freeze')).body).toEqual({ since: null, by: null });
      await client.update(id, { content: 'likes coffee' });
      await client.remove(id);
    });

    test('[Decision 53] only callers with admin:* freeze, and those of an open gateway', async (need) => {
      need('freeze');
      const powerless = admit({ grants: ['*:*'] });
      for (const method of ['GET', 'POST', 'DELETE'] as const) {
        expectError(await powerless.tell(method, '/freeze'), 'scope_denied');
      }
      const admin = admit({ app: 'operator', grants: ['admin:*'] });
      expect((await admin.tell('POST', '/freeze')).body).toMatchObject({ by: 'operator' });
      expect((await admin.tell('DELETE', '/freeze')).status).toBe(200);
    });
  });
