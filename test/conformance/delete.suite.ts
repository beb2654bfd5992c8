import { describe, expect } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import { type GetSubject, testOf } from './subject.ts';

export const deleteSuite = (subject: GetSubject) =>
  describe('delete', () => {
    const test = testOf(subject);
    const tell = (id: string, headers?: Record<string, string>) =>
      subject().client.tell('DELETE', subject().client.byId(id), undefined, headers);

    test('[SPEC DELETE /memories/{id}] concurrent deletes delete once', async (need) => {
      need('delete');
      const { id } = await subject().client.add({ user_id: freshUser(), content: 'once' });
      const statuses = (await Promise.all([tell(id), tell(id), tell(id), tell(id)])).map((reply) => reply.status);
      expect(statuses.sort()).toEqual([204, 404, 404, 404]);
    });

    test('[Decision 19] the record of another user does not exist', async (need) => {
      need('delete');
      const { id, user_id } = await subject().client.add({ user_id: freshUser(), content: 'mine' });
      expectError(await tell(id, { 'x-user-id': 'somebody else' }), 'not_found');
      expect((await subject().client.get(id)).id).toBe(id);
      expect((await tell(id, { 'x-user-id': user_id })).status).toBe(204);
    });
  });
