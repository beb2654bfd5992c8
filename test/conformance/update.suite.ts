import { describe, expect } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import { type GetSubject, testOf } from './subject.ts';

const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';

export const updateSuite = (subject: GetSubject) =>
  describe('update', () => {
    const test = testOf(subject);
    const full = {
      content: 'likes tea',
      scope: 'kitchen/drinks',
      tags: ['a', 'b'],
      source: { app: 'editor', type: 'explicit', ref: 'r1' },
      confidence: 0.5,
      valid_from: '2020-01-01T00:00:00.000Z',
      valid_to: '2030-01-01T00:00:00.000Z',
      supersedes: ['mem_old'],
      'x-kept': { n: 1 },
    };
    /** A record with every field set that there is a place for, one tick of the clock ago. */
    const added = async () => {
      const { without = [] } = subject();
      const places = Object.entries(full).filter(
        ([field]) => !without.includes(field.startsWith('x-') ? 'extensions' : field),
      );
      const memory = await subject().client.add({ ...Object.fromEntries(places), user_id: freshUser() });
      await laterMoment();
      return memory;
    };
    const update = (id: string, fields: object) => subject().client.update(id, { ...fields });
    const tell = (id: string, body: unknown, headers?: Record<string, string>) =>
      subject().client.tell('PATCH', subject().client.byId(id), body, headers);

    test('[SPEC PATCH /memories/{id} content] a patched content is found by its own words and vector, and by nothing of the old one', async (need) => {
      need('update', 'search');
      const user_id = freshUser();
      const { client } = subject();
      const patched = await client.add({ user_id, content: 'a holiday on a sandy beach' });
      await update(patched.id, { content: 'winter in the mountains' });
      // One that was never anything else.
      await client.add({ user_id, content: 'winter in the mountains' });
      for (const q of ['holiday on the beach', 'winter in the mountains']) {
        const scores = (await client.search({ user_id, q })).map(({ score }) => score);
        expect(scores[0], q).toBe(scores[1]);
      }
    });

    test('[Decision 7] null removes an x- key, and only that', async (need) => {
      need('update', 'extensions');
      const before = await added();
      const grown = await update(before.id, { 'x-a': 1, 'x-b': { c: null } });
      const { 'x-kept': _, ...rest } = await update(before.id, { 'x-a': null, 'x-none': null, 'x-new': 2 });
      expect(rest).not.toHaveProperty('x-a');
      expect(rest).not.toHaveProperty('x-none');
      expect(rest).toMatchObject({ 'x-b': { c: null }, 'x-new': 2 });
      const last = await update(before.id, { 'x-b': null, 'x-new': null });
      expect(last).toEqual({ ...before, updated_at: last.updated_at });
      expect(String(last.updated_at) > String(grown.updated_at)).toBe(true);
      expect(await subject().client.get(before.id)).toEqual(last);
      // One that is not there is not changed by its removal.
      expect(await update(before.id, { 'x-a': null })).toEqual(last);
    });

    test('[Decision 29] [SPEC Errors payload_too_large] no patch makes a record larger than two requests, and one may shrink', async (need) => {
      need('update', 'extensions');
      const before = await added();
      const kilobytes = (count: number) => 'a'.repeat(count * 1024);
      const isLong = subject().capabilities.features.max_content_length === null;
      const part = kilobytes(isLong ? 700 : 15);
      expect((await update(before.id, { 'x-a': part, 'x-b': 1 }))['x-b']).toBe(1);
      expect((await update(before.id, { 'x-b': part }))['x-b']).toBe(part);
      const grown = await subject().client.get(before.id);
      expectError(await tell(before.id, { 'x-c': part, 'x-d': 1 }), 'payload_too_large');
      expect(await subject().client.get(before.id)).toEqual(grown);
      // At once, each would fit alone.
      const few = await update(before.id, { 'x-b': null });
      const both = ['x-d', 'x-e', 'x-f'].map((key) => tell(before.id, { [key]: part }));
      const statuses = (await Promise.all(both)).map(({ status }) => status);
      expect(statuses.sort()).toEqual([200, 413, 413]);
      expect((await update(before.id, { 'x-a': null, 'x-d': null, 'x-e': null, 'x-f': null }))['x-kept']).toEqual(
        few['x-kept'],
      );
    });

    test('[Decision 7] a patch that changes nothing leaves updated_at', async (need) => {
      need('update', 'valid_to');
      const before = await added();
      expect(await update(before.id, {})).toEqual(before);
      expect(await update(before.id, { future: 1 })).toEqual(before);
      const fields = ['content', 'scope', 'tags', 'confidence', 'valid_to', 'supersedes', 'x-kept'] as const;
      const same = fields.map((field) => [field, before[field]]).filter(([, value]) => value != null);
      expect(await update(before.id, Object.fromEntries(same))).toEqual(before);
      expect(await update(before.id, { valid_to: '2030-01-01T01:00+01:00' })).toEqual(before);
    });

    test('[Decision 7] 0 onto -0 changes nothing', async (need) => {
      need('update', 'confidence', 'extensions');
      const { id } = await added();
      /** `JSON.stringify` would write 0. */
      const patch = async (zero: '0' | '-0') => {
        const body = `{"confidence": ${zero}, "x-n": [${zero}]}`;
        const headers = { 'content-type': 'application/json' };
        return (await subject().client.raw(subject().client.byId(id), { method: 'PATCH', headers, body })).text;
      };
      const first = await patch('-0');
      await laterMoment();
      expect(await patch('0')).toBe(first);
      expect(await patch('-0')).toBe(first);
    });

    test('[Decision 6] extensions are merged key by key', async (need) => {
      need('update', 'extensions');
      const before = await added();
      const after = await update(before.id, { 'x-new': [true], 'x-second': 'b' });
      expect(after).toEqual({ ...before, 'x-new': [true], 'x-second': 'b', updated_at: after.updated_at });
      const again = await update(before.id, { 'x-kept': 'replaced whole' });
      expect(again).toEqual({ ...after, 'x-kept': 'replaced whole', updated_at: again.updated_at });
      expect(await subject().client.get(before.id)).toEqual(again);
    });

    test('[Decision 6] no patch gives a memory more than 256 keys', async (need) => {
      need('update', 'extensions');
      const before = await added();
      const keys = (letter: string) =>
        Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`x-${letter}${n}`, n]));
      const after = await update(before.id, keys('a'));
      expect(after).toMatchObject(keys('a'));
      expectError(await tell(before.id, keys('b')), 'invalid_request');
      expect(await subject().client.get(before.id)).toEqual(after);
    });

    test('[SPEC PATCH /memories/{id}] concurrent patches of different fields lose nothing', async (need) => {
      need('update', 'tags', 'confidence', 'extensions');
      const before = await added();
      await Promise.all([
        update(before.id, { content: 'one' }),
        update(before.id, { tags: ['two'] }),
        update(before.id, { confidence: 0.3 }),
        update(before.id, { 'x-a': 1 }),
        update(before.id, { 'x-b': 2 }),
      ]);
      const after = await subject().client.get(before.id);
      expect(after).toMatchObject({
        content: 'one',
        tags: ['two'],
        confidence: 0.3,
        'x-a': 1,
        'x-b': 2,
        'x-kept': { n: 1 },
      });
    });

    test('[Decision 19] [SPEC PATCH /memories/{id} unknown] an empty patch of an unknown id, and the record of another user, answer 404', async (need) => {
      need('update');
      expectError(await tell(UNKNOWN_ID, {}), 'not_found');
      const before = await added();
      expectError(await tell(before.id, { content: 'stolen' }, { 'x-user-id': 'somebody else' }), 'not_found');
      expect(await subject().client.get(before.id)).toEqual(before);
      expect((await tell(before.id, { content: 'mine' }, { 'x-user-id': before.user_id })).status).toBe(200);
    });
  });
