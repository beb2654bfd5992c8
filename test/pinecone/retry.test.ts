import { describe, expect, it } from 'vitest';
import { Failure, parseRetryAfter } from '../../providers/pinecone/client/errors.ts';
import { pauseAfter, withRetries } from '../../providers/pinecone/client/retry.ts';

const never = new AbortController().signal;

/** Number of attempts after such failures. */
async function attempts(failure: () => unknown, idempotent: boolean): Promise<number> {
  let made = 0;
  const work = () => {
    made++;
    return Promise.reject(failure());
  };
  await expect(withRetries(work, { idempotent, signal: never })).rejects.toEqual(failure());
  return made;
}

describe('retries', () => {
  it.each([
    ['unreachable', 3, 3],
    ['rate-limited', 3, 3],
    ['server-error', 3, 3],
    ['connection-lost', 3, 1],
    ['malformed', 3, 1],
    ['timeout', 2, 1],
    ['insecure', 1, 1],
    ['rejected', 1, 1],
  ] as const)('%s: %i attempts if idempotent, otherwise %i', async (kind, idempotent, other) => {
    expect(await attempts(() => new Failure(kind, 'x'), true)).toBe(idempotent);
    expect(await attempts(() => new Failure(kind, 'x'), false)).toBe(other);
  });

  it('do not follow other errors', async () => {
    expect(await attempts(() => new TypeError('x'), true)).toBe(1);
  });

  it('end with the first success', async () => {
    let made = 0;
    const work = async () => {
      if (++made < 3) throw new Failure('server-error', 'x');
      return made;
    };
    expect(await withRetries(work, { idempotent: false, signal: never })).toBe(3);
  });
});

describe('the pause', () => {
  const pauses = (failure: Failure, made: number) =>
    Array.from({ length: 500 }, () => pauseAfter(failure, made, true) as number);

  it.each([
    [1, 100],
    [2, 200],
  ])('after attempt %i has a random length up to %i ms', (made, longest) => {
    const some = pauses(new Failure('server-error', 'x'), made);
    expect(Math.min(...some)).toBeGreaterThanOrEqual(0);
    expect(Math.min(...some)).toBeLessThan(longest / 5);
    expect(Math.max(...some)).toBeLessThan(longest);
    expect(Math.max(...some)).toBeGreaterThan((longest * 4) / 5);
  });

  it('adds what Retry-After says', () => {
    const some = pauses(new Failure('rate-limited', 'x', { status: 429, retryAfter: 1 }), 1);
    expect(Math.min(...some)).toBeGreaterThanOrEqual(1_000);
    expect(Math.max(...some)).toBeLessThan(1_100);
  });

  it.each(['rate-limited', 'server-error'] as const)(
    'of %s is not taken if Retry-After is longer than a second',
    (kind) => {
      expect(pauseAfter(new Failure(kind, 'x', { retryAfter: 2 }), 1, true)).toBeUndefined();
    },
  );
});

describe('an aborted signal', () => {
  it('prevents the first attempt', async () => {
    const work = () => expect.unreachable();
    const signal = AbortSignal.abort('gone');
    await expect(withRetries(work, { idempotent: true, signal })).rejects.toBe('gone');
  });

  it('ends a pause at once, with the reason of the signal', async () => {
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
      return Promise.reject(new Failure('rate-limited', 'x', { retryAfter: 1 }));
    };
    await expect(withRetries(work, { idempotent: true, signal: client.signal })).rejects.toBe('gone');
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
    expect(parseRetryAfter(value)).toBe(seconds);
  });

  it('may be a date', () => {
    expect(parseRetryAfter(inSeconds(3_600))).toEqual(expect.closeTo(3_600, -3));
    expect(parseRetryAfter(inSeconds(-30))).toBe(0);
    expect(parseRetryAfter(inSeconds(200_000))).toBeUndefined();
  });
});
