import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freshUser } from '../support/gateway.ts';
import type { GetSubject } from './subject.ts';

export const timesSuite = (subject: GetSubject) =>
  describe('times', () => {
    it('[SPEC Memory created_at] is correct again after a clock that was 30 years ahead is corrected', async () => {
      onTestFinished(() => void vi.useRealTimers());
      const user_id = freshUser();
      const add = () => subject().client.add({ user_id, content: 'a note' });
      const year = 365 * 86_400_000;
      const now = Date.now();
      vi.useFakeTimers({ toFake: ['Date'], now: now + 30 * year });
      await add();
      vi.setSystemTime(now);
      expect(Date.parse((await add()).created_at)).toBeLessThan(now + year);
    });
  });
