import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createFallback } from '../../src/rate-limit/rate-limits.ts';
import { recordingLog } from '../support/subject.ts';

/** Asks that the test answers when it wants to. */
function slowStore() {
  const asked: { answer: () => void; fail: () => void }[] = [];
  const ask = () =>
    new Promise<string>((resolve, reject) => {
      asked.push({ answer: () => resolve('shared'), fail: () => reject(new Error('down')) });
    });
  return { asked, ask };
}
const otherwise = async () => 'alone';

describe('[Decision 17] an outage of the store', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is found out by one request, and tried again by one a second', async () => {
    const log = recordingLog();
    const orElse = createFallback('redis', log);
    let down = true;
    let asked = 0;
    const ask = async () => {
      asked++;
      if (down) throw new Error('down');
      return 'shared';
    };
    const request = () => orElse(ask, otherwise);
    for (let i = 0; i < 10; i++) expect(await request()).toBe('alone');
    expect(asked).toBe(1);
    vi.advanceTimersByTime(1_000);
    for (let i = 0; i < 10; i++) expect(await request()).toBe('alone');
    expect(asked).toBe(2);
    down = false;
    expect(await request()).toBe('alone');
    vi.advanceTimersByTime(1_000);
    for (let i = 0; i < 10; i++) expect(await request()).toBe('shared');
    expect(asked).toBe(12);
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'info']);
  });

  it('is not over because of an answer to what was asked before it', async () => {
    const log = recordingLog();
    const orElse = createFallback('redis', log);
    const { asked, ask } = slowStore();
    const requests = [orElse(ask, otherwise), orElse(ask, otherwise)];
    asked[1]?.fail();
    expect(await requests[1]).toBe('alone');
    asked[0]?.answer();
    expect(await requests[0]).toBe('shared');
    expect(await orElse(ask, otherwise)).toBe('alone');
    expect(log.lines.map(({ level }) => level)).toEqual(['warn']);
  });

  it('begins when an answer takes too long, and what comes late harms nobody', async () => {
    const orElse = createFallback('redis', recordingLog());
    const { asked, ask } = slowStore();
    const requests = [orElse(ask, otherwise), orElse(ask, otherwise)];
    await vi.advanceTimersByTimeAsync(501);
    expect(await Promise.all(requests)).toEqual(['alone', 'alone']);
    asked[0]?.answer();
    asked[1]?.fail();
    expect(await orElse(ask, otherwise)).toBe('alone');
  });
});
