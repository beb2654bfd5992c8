import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { FailedStatus, withBatching } from '../../src/embedding/with-batching.ts';
import { callOf, gate, observedEmbedder } from './observed-embedder.ts';

const numbers = (vectors: Float32Array[]) => vectors.map((vector) => vector[0]);

function batching(
  limits: Partial<Parameters<typeof withBatching>[1]> = {},
  answer?: Parameters<typeof observedEmbedder>[0],
) {
  const { embedder, batches } = observedEmbedder(answer);
  return { batched: withBatching(embedder, { batchSize: 8, concurrency: 1, ...limits }), batches };
}

/** One batch at a time; the first stays open until the test opens the gate, so that what follows has to wait. */
function held() {
  const first = gate();
  const inner = observedEmbedder(({ texts }) => (texts.includes('hold') ? first.opened : undefined));
  const embedder = withBatching(inner.embedder, { batchSize: 3, concurrency: 1 });
  const holding = embedder.embed(['hold'], 'document', callOf());
  return { ...inner, embedder, holding, release: first.open };
}

const textsOf = (batches: readonly { texts: readonly string[] }[]) => batches.map(({ texts }) => texts);

describe('coalescing', () => {
  it('puts texts of concurrent calls into one batch and gives each call its own vector', async () => {
    const { batched, batches } = batching();
    const answers = await Promise.all(['a', 'bb', 'ccc'].map((text) => batched.embed([text], 'document', callOf())));
    expect(answers.map(numbers)).toEqual([[1], [2], [3]]);
    expect(textsOf(batches)).toEqual([['a', 'bb', 'ccc']]);
  });

  it('cuts a long call into batches of the allowed size, in order', async () => {
    const { batched, batches } = batching({ batchSize: 2, concurrency: 2 });
    const texts = ['a', 'bb', 'ccc', 'dddd', 'eeeee'];
    expect(numbers(await batched.embed(texts, 'document', callOf()))).toEqual([1, 2, 3, 4, 5]);
    expect(textsOf(batches)).toEqual([['a', 'bb'], ['ccc', 'dddd'], ['eeeee']]);
  });

  it('starts no more batches at once than allowed', async () => {
    let running = 0;
    let most = 0;
    const { batched, batches } = batching({ batchSize: 1, concurrency: 2 }, async () => {
      running += 1;
      most = Math.max(most, running);
      await turn();
      running -= 1;
    });
    await batched.embed(['a', 'b', 'c', 'd', 'e'], 'document', callOf());
    expect(batches).toHaveLength(5);
    expect(most).toBe(2);
  });

  it('answers a call without texts without asking anybody', async () => {
    const { batched, batches } = batching();
    expect(await batched.embed([], 'query', callOf())).toEqual([]);
    expect(batches).toEqual([]);
  });

  it('lets queries and documents take turns, never in one batch', async () => {
    const { embedder, batches, holding, release } = held();
    await turn();
    const documents = embedder.embed(['d1', 'd2', 'd3', 'd4', 'd5'], 'document', callOf());
    const queries = embedder.embed(['q1', 'q2', 'q3', 'q4'], 'query', callOf());
    release();
    await Promise.all([holding, documents, queries]);
    expect(textsOf(batches)).toEqual([['hold'], ['q1', 'q2', 'q3'], ['d1', 'd2', 'd3'], ['q4'], ['d4', 'd5']]);
    expect(batches.map(({ purpose }) => purpose)).toEqual(['document', 'query', 'document', 'query', 'document']);
  });
});

describe('abort', () => {
  it('drops a waiting call: rejects with the reason of its signal and never computes its texts', async () => {
    const { embedder, batches, holding, release } = held();
    await turn();
    const abort = new AbortController();
    const reason = new Error('client went away');
    const dropped = embedder.embed(['dropped'], 'document', callOf(abort.signal));
    const kept = embedder.embed(['kept'], 'document', callOf());
    abort.abort(reason);
    await expect(dropped).rejects.toBe(reason);
    release();
    await Promise.all([holding, kept]);
    expect(textsOf(batches)).toEqual([['hold'], ['kept']]);
  });

  it('refuses a call that is aborted already', async () => {
    const { batched, batches } = batching();
    const reason = new Error('too late');
    await expect(batched.embed(['a'], 'query', callOf(AbortSignal.abort(reason)))).rejects.toBe(reason);
    await turn();
    expect(batches).toEqual([]);
  });

  it('cancels a batch under way only when its last caller has gone', async () => {
    const { opened, open } = gate();
    const { batched, batches } = batching({}, () => opened);
    const [first, second] = [new AbortController(), new AbortController()];
    const calls = [first, second].map(({ signal }) => batched.embed(['a'], 'document', callOf(signal)));
    const settled = Promise.allSettled(calls);
    await turn();
    first.abort();
    await expect(calls[0]).rejects.toBe(first.signal.reason);
    expect(batches[0]?.signal.aborted).toBe(false);
    const late = new Error('the deadline has passed');
    second.abort(late);
    await settled;
    expect(batches[0]?.signal.aborted).toBe(true);
    // What that one left for: a deadline that passes tells of the service.
    expect(batches[0]?.signal.reason).toBe(late);
    open();
  });
});

describe('a limit of those that wait', () => {
  /** One batch of two texts at a time, and three texts that wait. */
  function limited() {
    const first = gate();
    const { embedder: inner, batches } = observedEmbedder(() => first.opened);
    const embedder = withBatching(inner, { batchSize: 2, concurrency: 1, maxQueued: 3 });
    const ask = (texts: readonly string[], signal?: AbortSignal) => embedder.embed(texts, 'document', callOf(signal));
    return { embedder, batches, ask, release: first.open };
  }
  const refusal = { code: 'rate_limited', retryAfter: 1 };

  it('[Decision 29] refuses a call that has no place, as a whole, and answers those before it', async () => {
    const { embedder, batches, ask, release } = limited();
    const taken = [ask(['a']), ask(['bb']), ask(['ccc', 'dddd'])];
    // Two of them do not wait: the first batch has room for them.
    expect(embedder.stats?.()).toEqual({ queue_length: 4, cache_hits: 0, cache_misses: 0 });
    await expect(ask(['no', 'place'])).rejects.toMatchObject(refusal);
    taken.push(ask(['eeeee']));
    await expect(ask(['no'])).rejects.toMatchObject(refusal);
    await turn();
    expect(embedder.stats?.().queue_length).toBe(3);
    await expect(embedder.embed(['no'], 'query', callOf())).rejects.toMatchObject(refusal);
    release();
    expect((await Promise.all(taken)).map(numbers)).toEqual([[1], [2], [3, 4], [5]]);
    expect(textsOf(batches).flat()).not.toContain('no');
    expect(embedder.stats?.().queue_length).toBe(0);
    expect(numbers(await ask(['again']))).toEqual([5]);
  });

  it('[Decision 29] refuses what would let too many bytes wait', async () => {
    const { embedder, ask, release } = limited();
    const large = 'a'.repeat(20 * 1024 * 1024);
    // However large: where nobody waits, a call is taken.
    const taken = [ask([large])];
    await expect(ask([large])).rejects.toMatchObject(refusal);
    taken.push(ask(['bb']));
    release();
    expect((await Promise.all(taken)).map(numbers)).toEqual([[large.length], [2]]);
    expect(embedder.stats?.().queue_length).toBe(0);
    const given = new AbortController();
    const left = ask([large], given.signal);
    given.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    expect((await Promise.all([ask(['a']), ask([large.slice(1)])])).flat()).toHaveLength(2);
  });

  it('[Decision 29] sends no more than a mebibyte of texts in one batch, unless one is larger', async () => {
    const { batched, batches } = batching();
    const texts = [200_000, 200_000, 200_000, 1_000_000, 3].map((length) => 'a'.repeat(length));
    expect(numbers(await batched.embed(texts, 'document', callOf()))).toEqual(texts.map(({ length }) => length));
    expect(textsOf(batches).map((batch) => batch.map(({ length }) => length))).toEqual([
      [200_000, 200_000],
      [200_000],
      [1_000_000],
      [3],
    ]);
  });

  it('[Decision 29] has no place taken by a call that was given up', async () => {
    const { ask, release } = limited();
    const taken = ask(['a', 'bb']);
    await turn();
    const leaving = new AbortController();
    const left = ask(['x', 'y', 'z'], leaving.signal);
    await expect(ask(['no'])).rejects.toMatchObject(refusal);
    leaving.abort();
    await expect(left).rejects.toBe(leaving.signal.reason);
    const next = ask(['ccc']);
    release();
    expect(numbers((await Promise.all([taken, next])).flat())).toEqual([1, 2, 3]);
  });

  it('takes a call that is alone, whatever its length', async () => {
    const { ask, release } = limited();
    release();
    expect(await ask(['1', '2', '3', '4', '5', '6', '7', '8', '9'])).toHaveLength(9);
  });
});

describe('failure', () => {
  it('a failing batch fails every call in it, and later calls work', async () => {
    let failing = true;
    const failure = new OmpError('provider_error', 'down');
    const { batched } = batching({}, () => {
      if (failing) throw failure;
    });
    const calls = ['a', 'b'].map((text) => batched.embed([text], 'document', callOf()));
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: failure });
    }
    failing = false;
    expect(numbers(await batched.embed(['abc'], 'document', callOf()))).toEqual([3]);
  });

  it('a refused text fails its own call only', async () => {
    const refusal = new OmpError('invalid_request', 'refused');
    const { batched, batches } = batching({}, ({ texts }) => {
      if (texts.includes('bad')) throw refusal;
    });
    const texts = ['a', 'bb', 'bad', 'dddd', 'eeeee'];
    const outcomes = await Promise.allSettled(texts.map((text) => batched.embed([text], 'document', callOf())));
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect(outcomes[2]).toMatchObject({ reason: refusal });
    expect(batches.at(0)?.texts).toEqual(texts);
  });

  /** Requests for 70 texts of growing length, of which the service refuses some. */
  const requestsFor = async (refused: readonly number[], failure: OmpError) => {
    const bad = new Set(refused.map((length) => 'x'.repeat(length)));
    const { batched, batches } = batching({ batchSize: 100 }, ({ texts }) => {
      if (texts.some((text) => bad.has(text))) throw failure;
    });
    // Neither in the order of their lengths nor all of different ones.
    const lengths = Array.from({ length: 70 }, (_, i) => ((i * 37) % 70) + 1);
    const calls = lengths.map((length) => batched.embed(['x'.repeat(length)], 'document', callOf()));
    const outcomes = await Promise.allSettled(calls);
    const rejected = lengths.filter((_, i) => outcomes[i]?.status === 'rejected');
    expect(rejected.sort((a, b) => a - b)).toEqual(refused);
    const codes = outcomes.flatMap((one) => (one.status === 'rejected' ? one.reason.code : []));
    return { requests: batches.length, codes: new Set(codes) };
  };
  const REFUSAL = new OmpError('invalid_request', 'refused');
  const FAILURE = new OmpError('provider_error', 'failed', { cause: new FailedStatus(500, 'HTTP 500') });

  it('one text of 70 that a service refuses costs two more requests if it is the longest, and never more than 15', async () => {
    expect((await requestsFor([70], REFUSAL)).requests).toBe(3);
    for (let length = 1; length <= 70; length++) {
      expect((await requestsFor([length], REFUSAL)).requests, String(length)).toBeLessThanOrEqual(15);
    }
    await requestsFor([1, 35, 36, 70], REFUSAL);
  });

  it('a long text for which a service fails is rejected if it fails for it alone too, and a service that fails for every text gets two requests more', async () => {
    expect(await requestsFor([70], FAILURE)).toEqual({ requests: 3, codes: new Set(['invalid_request']) });
    expect((await requestsFor([68, 69, 70], FAILURE)).requests).toBeLessThanOrEqual(12);
    const all = Array.from({ length: 70 }, (_, i) => i + 1);
    expect((await requestsFor(all, FAILURE)).requests).toBe(3);
    expect((await requestsFor(all, new OmpError('provider_error', 'down'))).requests).toBe(1);
  });

  it('the longest text is not rejected for a failure that has passed when it is alone', async () => {
    let failures = 1;
    const { batched } = batching({}, ({ texts }) => {
      if (texts.includes('long') && failures-- > 0) throw FAILURE;
    });
    const calls = ['a', 'bb', 'long'].map((text) => batched.embed([text], 'document', callOf()));
    expect((await Promise.all(calls)).map(numbers)).toEqual([[1], [2], [4]]);
  });

  it.each([
    ['refuses', REFUSAL],
    ['fails for', FAILURE],
  ])('no text is refused by a service that %s more texts than it takes at once', async (_, failure) => {
    for (const most of [32, 63]) {
      const { batched } = batching({ batchSize: 64 }, ({ texts }) => {
        if (texts.length > most) throw failure;
      });
      const texts = Array.from({ length: 64 }, (_, i) => 'x'.repeat(i + 1));
      const all = Promise.all(texts.map((text) => batched.embed([text], 'document', callOf())));
      expect((await all).map(numbers)).toEqual(texts.map(({ length }) => [length]));
    }
  });

  it('a text is not refused because one beside it was whose caller left', async () => {
    const leaving = new AbortController();
    const { batched } = batching({}, ({ texts }) => {
      if (texts.join() === 'a,bb') leaving.abort(new Error('left'));
      if (texts.includes('bad!')) throw REFUSAL;
    });
    const bad = batched.embed(['bad!'], 'document', callOf(leaving.signal)).catch((error: Error) => error.message);
    const good = ['a', 'bb', 'ccc', 'ddddd'].map((text) => batched.embed([text], 'document', callOf()));
    expect((await Promise.all(good)).map(numbers)).toEqual([[1], [2], [3], [5]]);
    expect(await bad).toBe('left');
  });

  it('drops the rest of a call one of whose texts was refused', async () => {
    const { batched, batches } = batching({ batchSize: 1, concurrency: 1 }, ({ texts }) => {
      if (texts.includes('bad')) throw new OmpError('invalid_request', 'refused');
    });
    await expect(batched.embed(['bad', 'never'], 'document', callOf())).rejects.toMatchObject({
      code: 'invalid_request',
    });
    await batched.embed(['next'], 'document', callOf());
    expect(textsOf(batches)).toEqual([['bad'], ['next']]);
  });
});
