import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Query } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/subject.ts';
import { type GetSubject, needFields, needVerbs } from './subject.ts';

/** Every form of ISO 8601 that a client library is known to write, and the moment it names. */
const FORMS: readonly (readonly [string, string])[] = [
  ['2024-01-02', '2024-01-02T00:00:00.000Z'],
  ['2024-01-02T10:20', '2024-01-02T10:20:00.000Z'],
  ['2024-01-02T10:20Z', '2024-01-02T10:20:00.000Z'],
  ['2024-01-02T10:20:30', '2024-01-02T10:20:30.000Z'],
  ['2024-01-02T10:20:30Z', '2024-01-02T10:20:30.000Z'],
  ['2024-01-02T10:20:30.5Z', '2024-01-02T10:20:30.500Z'],
  ['2024-01-02T10:20:30,5Z', '2024-01-02T10:20:30.500Z'],
  ['2024-01-02T10:20:30.123456+00:00', '2024-01-02T10:20:30.123Z'],
  ['2024-01-02T10:20:30.123456789Z', '2024-01-02T10:20:30.123Z'],
  ['2024-01-02T10:20:30+02:00', '2024-01-02T08:20:30.000Z'],
  ['2024-01-02T10:20:30-0530', '2024-01-02T15:50:30.000Z'],
  ['2024-01-02T10:20:30+02', '2024-01-02T08:20:30.000Z'],
  ['20240102T102030Z', '2024-01-02T10:20:30.000Z'],
  ['2024-W01-2', '2024-01-02T00:00:00.000Z'],
  ['2024-002', '2024-01-02T00:00:00.000Z'],
  ['2024-02-29T23:59:59.999-23:59', '2024-03-01T23:58:59.999Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
];

const BAD: readonly string[] = [
  '',
  'yesterday',
  '1704190830000',
  'Tue, 02 Jan 2024 10:20:30 GMT',
  '02/01/2024',
  '2024-13-01',
  '2024-02-30',
  '2023-02-29',
  '2024-01-02T25:00:00Z',
  '2024-01-02T10:61:00Z',
  '2024-01-02T10:20:30+99:00',
  '2024-01-02T10:20:30Z extra',
  '10:20:30',
  'T10:20',
  '+012024-01-02T00:00:00Z',
  '9999-12-31T23:59:59-01:00',
  '2024-01-02\u0000',
];

export const timesSuite = (subject: GetSubject) =>
  describe('times', () => {
    const { list, ask, add } = {
      list: (query: Query) => subject().client.list(query),
      ask: (query: Query) => subject().client.ask('/memories', query),
      add: (fields: object) => subject().client.add({ content: 'a note', ...fields }),
    };

    it.for(FORMS)('[Decision 9] [SPEC Memory valid_from] understands %s as %s', async ([given, moment], { skip }) => {
      needFields(skip, subject(), 'valid_from', 'valid_to');
      const added = await add({ user_id: freshUser(), valid_from: given, valid_to: given });
      expect(added.valid_from).toBe(moment);
      expect(added.valid_to).toBe(moment);
      expect(await subject().client.get(added.id)).toEqual(added);
    });

    it.for(FORMS)(
      '[Decision 9] [SPEC GET /memories since] understands %s in a query',
      async ([given, moment], { skip }) => {
        needVerbs(skip, subject(), 'list');
        skip(!subject().capabilities.features.temporal, 'declares no time filters');
        const user_id = freshUser();
        const { id, created_at } = await add({ user_id });
        const since = (await list({ user_id, since: given })).items.map((item) => item.id);
        const until = (await list({ user_id, until: given })).items.map((item) => item.id);
        expect(since).toEqual(moment <= created_at ? [id] : []);
        expect(until).toEqual(moment >= created_at ? [id] : []);
      },
    );

    it.for(BAD)('[Decision 9] refuses %j everywhere', async (bad, { skip }) => {
      const user_id = freshUser();
      for (const field of ['valid_from', 'valid_to']) {
        const reply = await subject().client.tell('POST', '/memories', { user_id, content: 'x', [field]: bad });
        expectError(reply, 'invalid_request');
      }
      needVerbs(skip, subject(), 'list');
      skip(!subject().capabilities.features.temporal, 'declares no time filters');
      expectError(await ask({ user_id, since: bad }), 'invalid_request');
      expectError(await ask({ user_id, until: bad }), 'invalid_request');
    });

    it('[SPEC GET /memories since] [SPEC GET /memories until] [Decision 1] are both inclusive', async ({ skip }) => {
      needVerbs(skip, subject(), 'list');
      skip(!subject().capabilities.features.temporal, 'declares no time filters');
      const user_id = freshUser();
      const times: string[] = [];
      for (let i = 0; i < 3; i++) {
        await laterMoment();
        times.push((await add({ user_id })).created_at);
      }
      const [first = '', second = '', third = ''] = times;
      const between = async (since?: string, until?: string) =>
        (await list({ user_id, since, until })).items.map((item) => item.created_at);
      expect(await between(second)).toEqual([third, second]);
      expect(await between(undefined, second)).toEqual([second, first]);
      expect(await between(second, second)).toEqual([second]);
      expect(await between(third, first)).toEqual([]);
      const shifted = (time: string, by: number) => new Date(Date.parse(time) + by).toISOString();
      expect(await between(shifted(second, 1))).toEqual([third]);
      expect(await between(undefined, shifted(second, -1))).toEqual([first]);
    });

    it('[SPEC Memory created_at] is right again once a clock that was 30 years ahead was corrected', async () => {
      onTestFinished(() => void vi.useRealTimers());
      const user_id = freshUser();
      const year = 365 * 86_400_000;
      const now = Date.now();
      vi.useFakeTimers({ toFake: ['Date'], now: now + 30 * year });
      await add({ user_id });
      vi.setSystemTime(now);
      expect(Date.parse((await add({ user_id })).created_at)).toBeLessThan(now + year);
    });

    it('[SPEC GET /memories since] [Decision 9] an unescaped + that arrived as a space is understood', async ({
      skip,
    }) => {
      needVerbs(skip, subject(), 'list');
      skip(!subject().capabilities.features.temporal, 'declares no time filters');
      const user_id = freshUser();
      const { created_at, id } = await add({ user_id });
      const local = new Date(Date.parse(created_at) + 2 * 3600_000).toISOString().replace('Z', '+02:00');
      for (const written of [local, local.replace('+', '%20'), local.replace('+', '%2B')]) {
        for (const bound of ['since', 'until']) {
          const reply = await subject().client.raw(`/memories?user_id=${user_id}&${bound}=${written}`);
          expect(reply.body, `${bound}=${written}`).toMatchObject({ items: [{ id }] });
        }
      }
    });

    it('[SPEC Capabilities features.temporal] time filters are refused where they are not declared', async ({
      skip,
    }) => {
      needVerbs(skip, subject(), 'list');
      skip(subject().capabilities.features.temporal, 'declares time filters');
      for (const bound of ['since', 'until']) {
        const reply = await ask({ user_id: freshUser(), [bound]: '2024-01-01' });
        expect(expectError(reply, 'unsupported_capability').message).toMatch(new RegExp(`^${bound}: `));
      }
    });
  });
