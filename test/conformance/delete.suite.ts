import { describe, expect } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { type GetSubject, supports, testOf } from './subject.ts';

export const deleteSuite = (subject: GetSubject) =>
  describe('delete', () => {
    const test = testOf(subject);
    const tell = (id: string, headers?: Record<string, string>) =>
      subject().client.tell('DELETE', subject().client.byId(id), undefined, headers);

    test('[SPEC DELETE /memories/{id}] answers 204 with an empty body, and no verb finds the memory', async (need) => {
      need('delete');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'to be forgotten' });
      const kept = await client.add({ user_id, content: 'to be kept' });
      const reply = await tell(id);
      expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' });
      expectError(await client.ask(client.byId(id)), 'not_found');
      if (supports(subject(), 'list')) {
        expect((await client.list({ user_id })).items.map((item) => item.id)).toEqual([kept.id]);
      }
      if (supports(subject(), 'search')) {
        const hits = await client.search({ user_id, q: 'to be forgotten' });
        expect(hits.map((hit) => hit.memory.id)).not.toContain(id);
      }
    });

    test('[SPEC DELETE /memories/{id} unknown] answers 404, also after a delete', async (need) => {
      need('delete');
      expectError(await tell('mem_01HZZZZZZZZZZZZZZZZZZZZZZZ'), 'not_found');
      const { id } = await subject().client.add({ user_id: freshUser(), content: 'once' });
      await subject().client.remove(id);
      expectError(await tell(id), 'not_found');
    });

    test('[SPEC DELETE /memories/{id}] concurrent deletes delete once', async (need) => {
      need('delete');
      const { id } = await subject().client.add({ user_id: freshUser(), content: 'once' });
      const statuses = (await Promise.all([tell(id), tell(id), tell(id), tell(id)])).map((reply) => reply.status);
      expect(statuses.sort()).toEqual([204, 404, 404, 404]);
    });

    test('[SPEC DELETE /memories/{id} history] a replaced record stays readable', async (need) => {
      need('update', 'supersession');
      const { client } = subject();
      const user_id = freshUser();
      const old = await client.add({ user_id, content: 'lives in Oslo' });
      const { id } = await client.add({ user_id, content: 'lives in Bergen' });
      expect((await client.update(id, { supersedes: [old.id] })).supersedes).toEqual([old.id]);
      expect(await client.get(old.id)).toEqual(old);
    });

    test('[Decision 19] the record of another user does not exist', async (need) => {
      need('delete');
      const { id, user_id } = await subject().client.add({ user_id: freshUser(), content: 'mine' });
      expectError(await tell(id, { 'x-user-id': 'somebody else' }), 'not_found');
      expect((await subject().client.get(id)).id).toBe(id);
      expect((await tell(id, { 'x-user-id': user_id })).status).toBe(204);
    });
  });
