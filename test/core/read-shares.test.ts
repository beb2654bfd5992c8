import { afterEach, describe, expect, it, vi } from 'vitest';
import type { OmpError } from '#contract';
import { createReadShares, SHARE_BYTES } from '../../src/core/read-shares.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { callBy } from '../support/requests.ts';

const LARGE = SHARE_BYTES / 2;
afterEach(() => vi.restoreAllMocks());

const failure = (pending: Promise<unknown>): Promise<OmpError | undefined> =>
  pending.then(
    () => undefined,
    (error: OmpError) => error,
  );

/** Lets everything go on that can. */
const turns = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** Reads whose results are there when `answer` is called. The client has the answer when `take` is called. */
const openShares = () => {
  const shares = createReadShares();
  const started: string[] = [];
  const read = (name: string, { caller = 'key:1', limit = 500, count = 500, bytes = LARGE, alone = false } = {}) => {
    const { opened, open: answer } = gate();
    const last: (() => void)[] = [];
    const call = callBy({ id: caller });
    call.afterAnswer = (work) => void last.push(work);
    const work = async () => {
      started.push(name);
      await opened;
      return { result: name, count, bytes };
    };
    const again = (): Promise<unknown> => (alone ? shares.alone(call, work) : shares.records(limit, call, work));
    const take = () => {
      for (const one of last.splice(0)) one();
    };
    return { done: again(), again, answer, take, abort: (reason: Error) => call.abort(reason) };
  };
  /** The caller's records have this size from now on. */
  const learn = async (recordBytes: number, caller = 'key:1') => {
    for (let i = 0; i < 100; i++) {
      const one = read('learned', { caller, limit: 1, count: 1, bytes: recordBytes });
      one.answer();
      await one.done;
      one.take();
    }
    started.length = 0;
  };
  return { read, started, learn };
};

describe('the share of a caller', () => {
  it('[Decision 29] admits two of the largest answers, and the next, in order, once one is taken', async () => {
    const { read, started } = openShares();
    const [a, b] = [read('a'), read('b'), read('c'), read('d', { limit: 100 })];
    await turns();
    expect(started).toEqual(['a', 'b']);
    a.answer();
    expect(await a.done).toBe('a');
    await turns();
    expect(started).toEqual(['a', 'b']);
    a.take();
    await turns();
    expect(started).toEqual(['a', 'b', 'c']);
    b.answer();
    await b.done;
    b.take();
    await turns();
    expect(started).toEqual(['a', 'b', 'c', 'd']);
  });

  it('[Decision 29] belongs to one caller', async () => {
    const { read, started } = openShares();
    for (const name of ['a', 'b', 'c']) read(name);
    read('other', { caller: 'key:2' });
    await turns();
    expect(started).toEqual(['a', 'b', 'other']);
  });

  it('[Decision 29] does not keep small reads waiting', async () => {
    const { read, started, learn } = openShares();
    await learn(200);
    for (let i = 0; i < 40; i++) read('large');
    for (let i = 0; i < 1_000; i++) read('small', { limit: 100, count: 100, bytes: 20_000 });
    await turns();
    expect(started.filter((name) => name === 'small')).toHaveLength(1_000);
    // However small the records are, a page of 500 counts as some hundred kilobytes.
    expect(started.filter((name) => name === 'large')).toHaveLength(16);
  });

  it('[Decision 29] counts what the rows take once they are there', async () => {
    const { read, started, learn } = openShares();
    const short = read('short', { bytes: 100_000 });
    read('a');
    read('b');
    await turns();
    expect(started).toEqual(['short', 'a']);
    short.answer();
    await short.done;
    await turns();
    expect(started).toEqual(['short', 'a', 'b']);

    const other = 'key:2';
    await learn(200, other);
    const long = read('long', { caller: other, limit: 4, count: 4, bytes: LARGE });
    long.answer();
    await long.done;
    // One record may take a megabyte, as those before.
    for (const name of ['c', 'd', 'e']) read(name, { caller: other, limit: 4 });
    await turns();
    expect(started).toEqual(['long', 'c']);
  });

  it('[Decision 29] is taken whole by an export, and the further reads of a request do not wait', async () => {
    const { read, started } = openShares();
    const whole = read('whole', { alone: true });
    read('whole 2', { alone: true });
    read('list');
    await turns();
    expect(started).toEqual(['whole']);
    void whole.again();
    await turns();
    expect(started).toEqual(['whole', 'whole']);
    whole.take();
    await turns();
    expect(started).toEqual(['whole', 'whole', 'whole 2']);
  });

  it('[Decision 29] is half free again while a client does not take its export', async () => {
    const { read, started } = openShares();
    const unread = read('export', { alone: true });
    unread.answer();
    await unread.done;
    read('list');
    read('export 2', { alone: true });
    await turns();
    expect(started).toEqual(['export', 'list']);
  });

  it('[Decision 29] [SPEC Errors rate_limited] rejects a read whose request ends while it waits', async () => {
    const { read, started } = openShares();
    const [a, , c] = [read('a'), read('b'), read('c'), read('d')];
    c.abort(new Error('too slow'));
    expect(await failure(c.done)).toMatchObject({ code: 'rate_limited', retryAfter: 1 });
    a.take();
    await turns();
    expect(started).toEqual(['a', 'b', 'd']);
  });

  it('[Decision 29] [SPEC Errors rate_limited] rejects a read that has waited too long when its turn comes', async () => {
    const { read, started } = openShares();
    const [a, , c] = [read('a'), read('b'), read('c')];
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 9_000);
    const d = read('d');
    vi.spyOn(performance, 'now').mockReturnValue(now + 12_000);
    a.take();
    expect(await failure(c.done)).toMatchObject({ code: 'rate_limited', retryAfter: 1 });
    expect(started).toEqual(['a', 'b', 'd']);
    d.answer();
    await d.done;
  });
});

it('[Decision 29] remembers the records of 10,000 callers', async () => {
  const { read, started, learn } = openShares();
  await learn(200, 'key:1');
  for (let n = 2; n <= 10_001; n++) read('other', { caller: `key:${n}`, limit: 1 });
  started.length = 0;
  // Begins anew, with two at once.
  for (let n = 0; n < 3; n++) read('large', { caller: 'key:1' });
  await turns();
  expect(started).toEqual(['large', 'large']);
});

it('[Decision 29] large results are returned one after another, with turns for other requests between them', async () => {
  const { read } = openShares();
  const all = Array.from({ length: 8 }, (_, n) => read('large', { caller: `key:${n}` }));
  const small = read('small', { caller: 'key:small', limit: 1, count: 1, bytes: 100 });
  const returned: string[] = [];
  for (const { done } of [...all, small]) void done.then((name) => returned.push(String(name)));
  for (const { answer } of [...all, small]) answer();
  let [turn, last] = [0, 0];
  const between: number[] = [];
  while (returned.length < 9) {
    const before = returned.length;
    await new Promise((resolve) => setImmediate(resolve));
    turn++;
    if (returned.length === before || returned.length === 1) continue;
    expect(returned.length - before).toBe(1);
    between.push(turn - last);
    last = turn;
  }
  expect(returned[0]).toBe('small');
  expect(Math.min(...between)).toBeGreaterThan(20);
});

describe('small reads that go on and on', () => {
  const open = () => {
    const shares = createReadShares();
    const started: string[] = [];
    const begin = (
      name: string,
      { caller = 'key:1', store = 'root', what }: { caller?: string; store?: string; what?: string } = {},
    ) => {
      const { opened, open: answer } = gate();
      const call = callBy({ id: caller });
      const work = async () => {
        started.push(name);
        await call.unlessAborted(opened);
        return name;
      };
      const done = what === undefined ? shares.part(store, call, work) : shares.shared(store, what, call, work);
      return { done, answer, abort: (reason: Error) => call.abort(reason) };
    };
    return { begin, started };
  };

  it('[Decision 29] run one at a time for each caller, store and kind', async () => {
    const { begin, started } = open();
    const [a] = [begin('a'), begin('b'), begin('other caller', { caller: 'key:2' }), begin('other', { store: 'crm' })];
    begin('follower', { what: 'x' });
    await turns();
    const first = ['a', 'other caller', 'other', 'follower'];
    expect(started).toEqual(first);
    a.answer();
    await a.done;
    await turns();
    expect(started).toEqual([...first, 'b']);
  });

  it('[Decision 29] do not begin for a request that has ended, which holds up nobody', async () => {
    const { begin, started } = open();
    const [a, b] = [begin('a'), begin('b'), begin('c')];
    b.abort(new Error('gone'));
    a.answer();
    await expect(b.done).rejects.toThrow('gone');
    await turns();
    expect(started).toEqual(['a', 'c']);
  });

  it('[Decision 51] are one if they are equal, of one caller', async () => {
    const { begin, started } = open();
    const equal = Array.from({ length: 100 }, (_, n) => begin(`${n}`, { what: 'x' }));
    const other = begin('other caller', { what: 'x', caller: 'key:2' });
    await turns();
    expect(started).toEqual(['0', 'other caller']);
    equal[0]?.answer();
    expect(new Set(await Promise.all(equal.map(({ done }) => done)))).toEqual(new Set(['0']));
    other.answer();
    expect(await other.done).toBe('other caller');
    const later = begin('later', { what: 'x' });
    later.answer();
    expect(await later.done).toBe('later');
  });

  it('[Decision 51] are not one with a read that has begun, which may lack what the next was woken for', async () => {
    const { begin, started } = open();
    const a = begin('a', { what: 'x' });
    await turns();
    const [b, c] = [begin('b', { what: 'x' }), begin('c', { what: 'x' })];
    for (const { answer } of [a, b, c]) answer();
    expect(await Promise.all([a, b, c].map(({ done }) => done))).toEqual(['a', 'b', 'b']);
    expect(started).toEqual(['a', 'b']);
  });

  it('[Decision 51] are read again by one of the others if the request that reads ends', async () => {
    const { begin, started } = open();
    const [a, b] = [begin('a', { what: 'x' }), begin('b', { what: 'x' })];
    await turns();
    a.abort(new Error('gone'));
    await expect(a.done).rejects.toThrow('gone');
    b.answer();
    expect(await b.done).toBe('b');
    expect(started).toEqual(['a', 'b']);
  });
});
