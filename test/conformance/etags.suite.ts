import { describe, expect } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

const OLD = '"2001-01-01T00:00:00.000Z"';

export const etagsSuite = (subject: GetSubject, admit: Admit) =>
  describe('ETag', () => {
    const test = testOf(subject);
    const added = () => subject().client.add({ user_id: freshUser(), content: 'tea', scope: 'a/b' });
    const etagOf = ({ updated_at }: WireMemory) => `"${updated_at}"`;
    const patch = (id: string, etag: string, fields: object = { content: 'coffee' }) =>
      subject().client.tell('PATCH', subject().client.byId(id), fields, { 'if-match': etag });
    const remove = (id: string, etag: string) =>
      subject().client.tell('DELETE', subject().client.byId(id), undefined, { 'if-match': etag });
    /** The envelope, and the version to continue with. */
    const expectChanged = (reply: Awaited<ReturnType<typeof patch>>, present: WireMemory) => {
      expect({ status: reply.status, body: reply.body }, reply.text).toMatchObject({
        status: 412,
        body: {
          error: { code: 'invalid_request', type: 'invalid', message: expect.stringContaining('read it again') },
        },
      });
      expect(reply.headers.get('etag')).toBe(etagOf(present));
    };

    test('[Decision 36] is updated_at in quotes, on add, get and update', async (need) => {
      need('etags');
      const { tell, ask, byId } = subject().client;
      const created = await tell('POST', '/memories', { user_id: freshUser(), content: 'tea' });
      const memory = created.body as WireMemory;
      const updated = await tell('PATCH', byId(memory.id), { content: 'coffee' });
      const read = await ask(byId(memory.id));
      for (const { headers, body } of [created, updated, read]) {
        expect(headers.get('etag')).toBe(etagOf(body as WireMemory));
      }
      expect(updated.headers.get('etag')).not.toBe(created.headers.get('etag'));
      expect(read.headers.get('etag')).toBe(updated.headers.get('etag'));
    });

    test('[Decision 36] a get with If-None-Match answers 304 while nothing changes', async (need) => {
      need('etags');
      const { ask, byId, update } = subject().client;
      const memory = await added();
      const known = (tag: string) => ask(byId(memory.id), {}, { 'if-none-match': tag });
      for (const tag of [etagOf(memory), `W/${etagOf(memory)}`, `"x", ${etagOf(memory)}`, '*']) {
        const { status, text, headers } = await known(tag);
        expect({ status, text, etag: headers.get('etag') }).toEqual({ status: 304, text: '', etag: etagOf(memory) });
      }
      for (const tag of [OLD, 'x', '"', '', `x${etagOf(memory)}`]) expect((await known(tag)).body).toEqual(memory);
      const changed = await update(memory.id, { content: 'coffee' });
      expect((await known(etagOf(memory))).body).toEqual(changed);
    });

    test('[Decision 36] a change with If-Match happens only to that version', async (need) => {
      need('etags');
      const first = await added();
      const second = (await patch(first.id, etagOf(first))).body as WireMemory;
      expect(second.content).toBe('coffee');
      for (const tag of [etagOf(first), OLD, '"x"', '""', `W/${etagOf(second)}`, '"2001-02-30T00:00:00.000Z"']) {
        expectChanged(await patch(first.id, tag, { content: 'wrong' }), second);
        expectChanged(await patch(first.id, tag, { scope: 'a/c' }), second);
        expectChanged(await patch(first.id, tag, {}), second);
        expectChanged(await patch(first.id, tag, { content: 'coffee' }), second);
        expectChanged(await remove(first.id, tag), second);
      }
      expect(await subject().client.get(first.id)).toEqual(second);
      expect((await patch(first.id, etagOf(second), {})).body).toEqual(second);
      const third = (await patch(first.id, `${OLD}, "x" ,${etagOf(second)}`, { content: 'water' })).body as WireMemory;
      expect(third.content).toBe('water');
      expect((await patch(first.id, '*', { content: 'milk' })).status).toBe(200);
      expect((await remove(first.id, '*')).status).toBe(204);
      const last = await added();
      expect((await remove(last.id, etagOf(last))).status).toBe(204);
    });

    test('[Decision 36] of concurrent changes of one version, one happens', async (need) => {
      need('etags', 'tags');
      const memory = await added();
      const changes = [
        ...Array.from({ length: 6 }, (_, i) => patch(memory.id, etagOf(memory), { content: `number ${i}` })),
        ...Array.from({ length: 6 }, (_, i) => patch(memory.id, etagOf(memory), { content: 'tea', tags: [`${i}`] })),
      ];
      const replies = await Promise.all(changes);
      expect(replies.filter(({ status }) => status === 412)).toHaveLength(11);
      const done = replies.find(({ status }) => status === 200);
      expect(await subject().client.get(memory.id)).toEqual(done?.body);
      const removals = Array.from({ length: 4 }, () => remove(memory.id, etagOf(done?.body as WireMemory)));
      const statuses = (await Promise.all(removals)).map(({ status }) => status);
      expect(statuses.sort()).toEqual([204, 404, 404, 404]);
    });

    test('[Decision 36] [Decision 14] If-Match reveals nothing of a memory that a caller may not change', async (need) => {
      need('etags', 'scopes');
      const memory = await added();
      const { tell, byId } = admit({ users: [memory.user_id], grants: ['*:b/*'] });
      const stranger = admit({ users: [freshUser()] });
      for (const etag of [OLD, etagOf(memory), '*']) {
        const headers = { 'if-match': etag };
        expectError(await tell('PATCH', byId(memory.id), { content: 'x' }, headers), 'scope_denied');
        expectError(await tell('DELETE', byId(memory.id), undefined, headers), 'scope_denied');
        expectError(await stranger.tell('PATCH', byId(memory.id), { content: 'x' }, headers), 'not_found');
        expectError(await patch('mem_unknown', etag), 'not_found');
        expectError(await remove('mem_unknown', etag), 'not_found');
      }
    });

    test('[Decision 36] [SPEC Errors unsupported_capability] without ETags, If-Match is refused and no ETag is sent', async (need) => {
      need('update', 'delete');
      if (subject().capabilities.features.etags) return;
      const { id } = await subject().client.add({ user_id: freshUser(), content: 'tea' });
      for (const etag of ['*', OLD, 'x']) {
        expectError(await patch(id, etag), 'unsupported_capability');
        expectError(await remove(id, etag), 'unsupported_capability');
      }
      const { status, headers } = await subject().client.ask(subject().client.byId(id), {}, { 'if-none-match': '*' });
      expect([status, headers.get('etag')]).toEqual([200, null]);
    });
  });
