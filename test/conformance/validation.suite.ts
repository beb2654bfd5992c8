import { describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import { type GetSubject, type Need, needs } from './subject.ts';

const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const placeOf = (field: string): Need => (field.startsWith('x-') ? 'extensions' : (field as Need));
const many = (count: number, make: (i: number) => string = (i) => `${i}`) =>
  Array.from({ length: count }, (_, i) => make(i));

const PATCHABLE = ['content', 'scope', 'tags', 'confidence', 'valid_to', 'supersedes', 'x-note'];

/** The longest and most unusual values that are allowed. */
const GOOD: Readonly<Record<string, readonly unknown[]>> = {
  content: ['x', '\u0001', ' x ', 'x'.repeat(8_000), '\ud83d\ude00', '\uffff\ufffe'],
  user_id: ['x'.repeat(200), '😀'.repeat(200), ' x '],
  scope: ['x', 'x'.repeat(512), '😀'.repeat(512), many(32).join('/'), 'a b', 'a\\b', '%', 'ü', '.', '..', '[a]', 'a:b'],
  tags: [[], ['x'.repeat(128)], ['😀'.repeat(128)], many(64), ['*', '?', '/']],
  source: [{ app: 'editor' }, { type: 'imported' }, { app: null, type: null, ref: null }, { app: 'a', future: 1 }],
  confidence: [0, 1, 0.5],
  valid_from: ['2024-01-01'],
  valid_to: ['2024-01-01', '1999-01-01'],
  supersedes: [[], ['mem_a'], many(64, (i) => `mem_${i}`)],
  'x-note': [0, '', [], {}, 'a\\u0000 written out', deep(28)],
};

export const validationSuite = (subject: GetSubject) =>
  describe('validation', () => {
    const post = (body: unknown) => subject().client.tell('POST', '/memories', body);
    const described = (value: unknown): string => (JSON.stringify(value) ?? '').slice(0, 60);

    it.for(Object.keys(GOOD))('[Decision 8] POST takes every allowed %s', async (field, { skip }) => {
      needs(skip, subject(), placeOf(field));
      for (const value of GOOD[field] ?? []) {
        const given = field === 'user_id' ? `${value}${freshUser()}` : value;
        const reply = await post({ content: 'x', user_id: freshUser(), [field]: given });
        expect(reply.status, `${described(value)} ${reply.text}`).toBe(201);
      }
    });

    it.for(PATCHABLE)('[Decision 8] PATCH takes every allowed %s', async (field, { skip }) => {
      needs(skip, subject(), placeOf(field), 'update');
      const { client } = subject();
      const { id } = await client.add({ content: 'x', user_id: freshUser() });
      for (const value of GOOD[field] ?? []) {
        const reply = await client.tell('PATCH', client.byId(id), { [field]: value });
        expect(reply.status, `${described(value)} ${reply.text}`).toBe(200);
      }
    });

    it('[Decision 8] exactly 256 characters of user_id are allowed, in a query too', async ({ skip }) => {
      const user_id = freshUser().padEnd(256, 'x');
      expect((await subject().client.add({ content: 'x', user_id })).user_id).toBe(user_id);
      needs(skip, subject(), 'list');
      expect((await subject().client.list({ user_id })).items).toHaveLength(1);
      expectError(await subject().client.ask('/memories', { user_id: `${user_id}x` }), 'invalid_request');
    });
  });
