import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Query } from '../support/client.ts';
import { freshUser, laterMoment } from '../support/subject.ts';
import { type GetSubject, testOf } from './subject.ts';

export const timesSuite = (subject: GetSubject) =>
  describe('times', () => {
    const test = testOf(subject);
    const { list, add } = {
      list: (query: Query) => subject().client.list(query),
      add: (fields: object) => subject().client.add({ content: 'a note', ...fields }),
    };

    test('[SPEC GET /memories since] [SPEC GET /memories until] [Decision 1] are both inclusive', async (need) => {
      need('list', 'temporal');
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

    it('[SPEC Memory created_at] is correct again after a clock that was 30 years ahead is corrected', async () => {
      onTestFinished(() => void vi.useRealTimers());
      const user_id = freshUser();
      const year = 365 * 86_400_000;
      const now = Date.now();
      vi.useFakeTimers({ toFake: ['Date'], now: now + 30 * year });
      await add({ user_id });
      vi.setSystemTime(now);
      expect(Date.parse((await add({ user_id })).created_at)).toBeLessThan(now + year);
    });
  });
