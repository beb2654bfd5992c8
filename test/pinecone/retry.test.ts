import { describe, expect, it } from 'vitest';
import { Failure, type FailureKind } from '../../providers/pinecone/failure.ts';
import { secondsOf } from '../../providers/pinecone/refusal.ts';
import { pauseAfter, RULES, repeating } from '../../providers/pinecone/retry.ts';

const KINDS = Object.keys(RULES) as FailureKind[];
const never = new AbortController().signal;

/** How often a work that fails so is attempted. */
async function attempts(failure: () => unknown, repeatable: boolean): Promise<number> {
  let made = 0;
  const work = () => {
    made++;
    return Promise.reject(failure());
  };
  await expect(repeating(work, { repeatable, signal: never })).rejects.toEqual(failure());
  return made;
}

describe('what is repeated', () => {
  it.each([
    ['unreachable', 3, 3],
    ['busy', 3, 3],
    ['failed', 3, 3],
    ['lost', 3, 1],
    ['unreadable', 3, 1],
    ['late', 2, 1],
    ['insecure', 1, 1],
    ['refused', 1, 1],
  ] as const)('%s: %i attempts of what is repeatable, %i of the rest', async (kind, repeatable, other) => {
    expect(await attempts(() => new Failure(kind, 'x'), true)).toBe(repeatable);
    expect(await attempts(() => new Failure(kind, 'x'), false)).toBe(other);
  });

  it('is decided for every kind of failure', () => {
    expect([...KINDS].sort()).toEqual(
      ['busy', 'failed', 'insecure', 'late', 'lost', 'refused', 'unreachable', 'unreadable'].sort(),
    );
  });

  it('is nothing else that was thrown: that is a mistake of ours', async () => {
    expect(await attempts(() => new TypeError('x'), true)).toBe(1);
  });

  it('ends with the first success', async () => {
    let made = 0;
    const work = async () => {
      if (++made < 3) throw new Failure('failed', 'x');
      return made;
    };
    expect(await repeating(work, { repeatable: false, signal: never })).toBe(3);
  });
});

describe('the pause', () => {
  const pauses = (failure: Failure, made: number) =>
    Array.from({ length: 500 }, () => pauseAfter(failure, made, true) as number);

  it.each([
    [1, 100],
    [2, 200],
  ])('after attempt %i is of any length up to %i ms', (made, longest) => {
    const some = pauses(new Failure('failed', 'x'), made);
    expect(Math.min(...some)).toBeGreaterThanOrEqual(0);
    expect(Math.min(...some)).toBeLessThan(longest / 5);
    expect(Math.max(...some)).toBeLessThan(longest);
    expect(Math.max(...some)).toBeGreaterThan((longest * 4) / 5);
  });

  it('is as long as the service asks for, and as much longer as without', () => {
    const some = pauses(new Failure('busy', 'x', { status: 429, retryAfter: 1 }), 1);
    expect(Math.min(...some)).toBeGreaterThanOrEqual(1_000);
    expect(Math.max(...some)).toBeLessThan(1_100);
  });

  it.each(['busy', 'failed'] as const)('is none where a service that is %s asks for more than a second', (kind) => {
    expect(pauseAfter(new Failure(kind, 'x', { retryAfter: 2 }), 1, true)).toBeUndefined();
  });
});

describe('a signal that fires', () => {
  it('before the first attempt: there is none', async () => {
    const work = () => expect.unreachable();
    const signal = AbortSignal.abort('gone');
    await expect(repeating(work, { repeatable: true, signal })).rejects.toBe('gone');
  });

  it('during a pause ends it at once, with the reason of the signal', async () => {
    const client = new AbortController();
    let [made, paused] = [0, false];
    const work = () => {
      made++;
      setImmediate(() => {
        setImmediate(() => {
          paused = true;
        });
        client.abort('gone');
      });
      return Promise.reject(new Failure('busy', 'x', { retryAfter: 1 }));
    };
    await expect(repeating(work, { repeatable: true, signal: client.signal })).rejects.toBe('gone');
    expect({ made, paused }).toEqual({ made: 1, paused: false });
  });
});

describe('Retry-After', () => {
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toUTCString();

  it.each([
    ['0', 0],
    ['7', 7],
    ['86400', 86_400],
    [null, undefined],
    ['', undefined],
    [' ', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['0x10', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['abc 5', undefined],
    ['86401', undefined],
    ['9'.repeat(400), undefined],
    ['Mon, 99 Nov 2026 10:00:00 GMT', undefined],
    ['2026-11-21T10:00:00Z', undefined],
  ])('%j is %s seconds', (value, seconds) => {
    expect(secondsOf(value)).toBe(seconds);
  });

  it('may be a date', () => {
    expect(secondsOf(inSeconds(3_600))).toEqual(expect.closeTo(3_600, -3));
    expect(secondsOf(inSeconds(-30))).toBe(0);
    expect(secondsOf(inSeconds(200_000))).toBeUndefined();
  });
});
