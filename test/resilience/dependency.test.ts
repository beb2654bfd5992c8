import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { OmpError } from '#contract';
import { createDependency, type Dependency, type DependencyOptions } from '../../src/resilience/dependencies.ts';
import { callOf, gate } from '../embedding/observed-embedder.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { call } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';

const NEVER_MS = 3_600_000;
/** Passes when a test says so. */
const HELD_MS = 3_599_999;
const READ = { kind: 'backend', dependency: 'store', name: 'get', reads: true } as const;

const down = (more: object = {}) => new OmpError('provider_error', 'gone', { provider: 'store', down: true, ...more });
const failing = (error: () => unknown) => () => Promise.reject(error());
const until = (condition: () => boolean) => expect.poll(condition, { interval: 2 }).toBe(true);

function open(options: Partial<DependencyOptions> = {}) {
  const log = recordingLog();
  const probes: AbortSignal[] = [];
  const dependency = createDependency({
    name: 'store',
    retries: 0,
    breaker_failures: 3,
    probe_ms: 1,
    log,
    ...options,
    probe: async (by) => {
      probes.push(by.signal);
      await options.probe?.(by);
    },
  });
  onTestFinished(dependency.close);
  const run = (work: () => Promise<unknown>) =>
    dependency.run(READ, call, work).then(
      () => 'done',
      (error: unknown) => error,
    );
  return { dependency, run, probes, lines: log.lines };
}

/** Its probes fail until `recover` is called. */
function openDown(options: Partial<DependencyOptions> = {}) {
  let up = false;
  const opened = open({
    ...options,
    probe: async () => {
      if (!up) throw down();
    },
  });
  const fail = async (times: number) => {
    for (let i = 0; i < times; i++) await opened.run(failing(down));
  };
  const recover = () => {
    up = true;
  };
  return { ...opened, fail, recover };
}

const isClosed = ({ state }: Dependency) => state === 'closed';

describe('a circuit breaker', () => {
  afterEach(() => vi.restoreAllMocks());

  it('[Decision 28] opens after the configured failures in a row, then rejects at once without running the work', async () => {
    const { dependency, run, fail, lines } = openDown({ probe_ms: NEVER_MS });
    await fail(2);
    expect(await run(async () => {})).toBe('done');
    await fail(2);
    expect(dependency.state).toBe('closed');
    await fail(1);
    expect(dependency.state).toBe('open');
    const work = vi.fn(async () => {});
    for (let i = 0; i < 20; i++) {
      expect(await run(work)).toMatchObject({ code: 'provider_error', provider: 'store', retryAfter: 1 });
    }
    expect(work).not.toHaveBeenCalled();
    expect(lines).toEqual([
      { level: 'warn', fields: { dependency: 'store', err: expect.any(OmpError) }, message: expect.any(String) },
    ]);
  });

  it.each([
    ['an answer that refuses', () => new OmpError('invalid_request', 'no')],
    ['a limit', () => new OmpError('rate_limited', 'later', { provider: 'store' })],
    ['a failure that was answered', () => new OmpError('provider_error', 'it broke', { provider: 'store' })],
    ['a mistake of ours', () => new TypeError('x is undefined')],
    ['nothing at all', () => undefined],
  ])('[Decision 28] is not opened by %s', async (_, error) => {
    const { dependency, run } = open();
    for (let i = 0; i < 20; i++) await run(failing(error));
    expect(dependency.state).toBe('closed');
  });

  it.each([
    ['a dependency that is down', () => down()],
    ['one that its errors leave unnamed', () => new OmpError('provider_error', 'gone', { down: true })],
  ])('[Decision 28] is opened by %s', async (_, error) => {
    const { dependency, run } = open({ probe_ms: NEVER_MS });
    for (let i = 0; i < 3; i++) await run(failing(error));
    expect(dependency.state).toBe('open');
  });

  it.each([
    ['the deadline of a request', () => down({ down: 'suspected' })],
    ['a time limit of the provider', () => new DOMException('too late', 'TimeoutError')],
  ])('[Decision 28] is opened by %s only if a probe gets no answer either', async (_, error) => {
    const answering = open();
    for (let i = 0; i < 20; i++) await answering.run(failing(error));
    await until(() => answering.probes.length > 0);
    expect(answering.dependency.state).toBe('closed');
    expect(answering.lines).toEqual([]);

    const { opened, open: answer } = gate();
    const silent = open({ probe_ms: NEVER_MS, probe: () => opened.then(() => Promise.reject(down())) });
    for (let i = 0; i < 3; i++) expect(await silent.run(failing(error))).toMatchObject({ message: error().message });
    expect(silent.dependency.state).toBe('closed');
    expect(silent.probes).toHaveLength(1);
    answer();
    await until(() => silent.dependency.state === 'open');
  });

  it.each([
    ['a limit', () => new OmpError('rate_limited', 'later', { provider: 'store' })],
    ['a failure that was answered', () => new OmpError('provider_error', 'refused', { provider: 'store' })],
  ])('[Decision 28] takes %s for an answer to a probe too', async (_, error) => {
    const probe = () => Promise.reject(error());
    const suspected = open({ probe_ms: NEVER_MS, probe });
    for (let i = 0; i < 20; i++) {
      await suspected.run(failing(() => down({ down: 'suspected' })));
      await until(() => suspected.probes.length > 0);
    }
    expect(suspected.dependency.state).toBe('closed');
    const { dependency, run } = open({ probe });
    for (let i = 0; i < 3; i++) await run(failing(down));
    await until(() => isClosed(dependency));
  });

  it('[Decision 28] counts a deadline once, however many calls of its request it ends', async () => {
    const { dependency, run, probes } = open({ probe_ms: NEVER_MS, probe: () => Promise.reject(down()) });
    for (const state of ['closed', 'closed', 'open']) {
      const deadline = down({ down: 'suspected' });
      await Promise.all(Array.from({ length: 9 }, () => run(failing(() => deadline))));
      // The probe has failed.
      await turn();
      expect(dependency.state).toBe(state);
    }
    expect(probes).toHaveLength(3);
  });

  it('[Decision 28] counts all failures with one cause once', async () => {
    const { dependency, run } = open({ probe_ms: NEVER_MS });
    const lose = (cause: Error) => Promise.all(Array.from({ length: 9 }, () => run(failing(() => down({ cause })))));
    await lose(new Error('first'));
    await lose(new Error('second'));
    expect(dependency.state).toBe('closed');
    await lose(new Error('third'));
    expect(dependency.state).toBe('open');
  });

  it.each([
    ['a store that takes no changes, since it answers reads', new OmpError('provider_error', 'no', { frozen: true })],
    ['a store that limits requests, since that is an answer', new OmpError('rate_limited', 'later')],
  ])('[Decision 28] [Decision 31] closes after a probe of %s, and stays closed at deadlines', async (_, answer) => {
    const { dependency, run, probes } = open({ probe: () => Promise.reject(answer) });
    for (let i = 0; i < 3; i++) await run(failing(down));
    await until(() => isClosed(dependency));
    for (let i = 0; i < 3; i++) await run(failing(() => down({ down: 'suspected' })));
    await until(() => probes.length > 1);
    await turn();
    expect(dependency.state).toBe('closed');
  });

  it('[Decision 28] closes after a successful probe, and logs for how long it was open', async () => {
    const { dependency, run, fail, probes, recover, lines } = openDown();
    await fail(3);
    await until(() => probes.length >= 3);
    expect(isClosed(dependency)).toBe(false);
    recover();
    await until(() => isClosed(dependency));
    expect(await run(async () => {})).toBe('done');
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'info']);
    expect(lines[1]?.fields).toMatchObject({ dependency: 'store', seconds: expect.any(Number) });
    // All over again: it is counted anew.
    await fail(2);
    expect(dependency.state).toBe('closed');
  });

  it('[Decision 28] sends one probe at a time, is half-open meanwhile, and rejects calls', async () => {
    const { opened, open: answer } = gate();
    const timers = holdTimers(HELD_MS);
    const { dependency, run, probes } = open({ probe: () => opened, probe_ms: HELD_MS });
    for (let i = 0; i < 3; i++) await run(failing(down));
    timers.pass();
    expect(dependency.state).toBe('half-open');
    expect(timers.waiting()).toBe(0);
    const work = vi.fn(async () => {});
    expect(await run(work)).toMatchObject({ retryAfter: 1 });
    expect(work).not.toHaveBeenCalled();
    expect(probes).toHaveLength(1);
    answer();
    await until(() => isClosed(dependency));
  });

  it('[Decision 28] limits the time of a probe, even if the probe ignores its signal', async () => {
    const { dependency, run, probes } = open({ probe: () => new Promise(() => {}) });
    for (let i = 0; i < 3; i++) await run(failing(down));
    await until(() => probes.length > 1);
    expect(probes[0]?.aborted).toBe(true);
    expect(isClosed(dependency)).toBe(false);
  });

  it('[Decision 28] closes independently of the clock', async () => {
    const { dependency, fail, recover } = openDown();
    await fail(3);
    vi.spyOn(Date, 'now').mockReturnValue(0);
    recover();
    await until(() => isClosed(dependency));
  });

  it('[Decision 28] ignores late failures of earlier calls', async () => {
    const { opened, open: goOn } = gate();
    const { dependency, run, fail, recover, lines } = openDown();
    const late = run(async () => {
      await opened;
      throw down();
    });
    await fail(3);
    goOn();
    await late;
    recover();
    await until(() => isClosed(dependency));
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'info']);
  });

  it('[Decision 28] sends no probes after close', async () => {
    const timers = holdTimers(HELD_MS);
    const { dependency, fail } = openDown({ probe_ms: HELD_MS });
    await fail(3);
    expect(timers.waiting()).toBe(1);
    dependency.close();
    expect(timers.waiting()).toBe(0);
  });
});

describe('a retry', () => {
  const outcomeOf = async (operation: Parameters<Dependency['run']>[0], retry: OmpError['retry'], retries = 2) => {
    const { dependency } = open({ retries, breaker_failures: 1_000 });
    const work = vi.fn(() => Promise.reject(down(retry && { retry })));
    await expect(dependency.run(operation, call, work)).rejects.toMatchObject({ message: 'gone' });
    return work.mock.calls.length;
  };
  const WRITE = { ...READ, name: 'add', reads: false };
  const EMBED = { ...READ, kind: 'embedding' } as const;

  it.each([
    ['a read that nothing came of', READ, 'safe', 3],
    ['a read that was cut off', READ, 'reads', 3],
    ['a read that would fail again', READ, undefined, 1],
    ['a write that nothing came of', WRITE, 'safe', 3],
    ['a write that was cut off', WRITE, 'reads', 1],
    ['a write that would fail again', WRITE, undefined, 1],
    ['an embedding, whose client tries again by itself', EMBED, 'safe', 1],
  ] as const)('[Decision 27] of %s', async (_, operation, retry, sent) => {
    expect(await outcomeOf(operation, retry)).toBe(sent);
  });

  it('[Decision 27] does not run if retries are off', async () => {
    expect(await outcomeOf(READ, 'safe', 0)).toBe(1);
  });

  it('[Decision 27] returns its result like a first attempt', async () => {
    const { dependency } = open({ retries: 2 });
    let sent = 0;
    const work = async () => {
      if (++sent < 3) throw down({ retry: 'reads' });
      return 'answer';
    };
    expect(await dependency.run(READ, call, work)).toBe('answer');
  });

  it('[Decision 27] does not run while the circuit breaker is open', async () => {
    const { dependency } = open({ retries: 9, probe_ms: NEVER_MS });
    const work = vi.fn(() => Promise.reject(down({ retry: 'safe' })));
    await expect(dependency.run(READ, call, work)).rejects.toMatchObject({ message: 'gone' });
    expect(work).toHaveBeenCalledTimes(3);
    expect(dependency.state).toBe('open');
  });

  it('[Decision 27] does not run after the call is aborted', async () => {
    const { dependency } = open({ retries: 9 });
    const leaving = new AbortController();
    const gone = new OmpError('invalid_request', 'gone');
    const work = vi.fn(() => {
      // During the pause.
      setImmediate(() => leaving.abort(gone));
      return Promise.reject(down({ retry: 'safe' }));
    });
    await expect(dependency.run(READ, callOf(leaving.signal), work)).rejects.toBe(gone);
    expect(work).toHaveBeenCalledOnce();
  });
});

/** What becomes of one attempt, and whether it may have acted. */
const OUTCOMES = {
  done: undefined,
  refused: new OmpError('invalid_request', 'no'),
  limited: new OmpError('rate_limited', 'later', { provider: 'store', retryAfter: 1 }),
  unreachable: new OmpError('provider_error', 'unreachable', { provider: 'store', retry: 'safe', down: true }),
  'rolled back': new OmpError('provider_error', 'rolled back', { provider: 'store', retry: 'safe' }),
  lost: new OmpError('provider_error', 'lost', { provider: 'store', retry: 'reads', down: true }),
  'too long': new OmpError('provider_error', 'too long', { provider: 'store', down: true }),
  broken: new TypeError('a mistake of ours'),
} as const;
type Outcome = keyof typeof OUTCOMES;
const NOTHING_HAPPENED: readonly Outcome[] = ['unreachable', 'rolled back'];

it('[Decision 27] a write is retried only if all earlier attempts are known to have had no effect', async () => {
  const outcome = fc.constantFrom(...(Object.keys(OUTCOMES) as Outcome[]));
  const story = fc.record({
    outcomes: fc.array(outcome, { minLength: 4, maxLength: 4 }),
    retries: fc.integer({ min: 0, max: 2 }),
    reads: fc.boolean(),
  });
  // The pauses are real: many at once.
  const stories = fc.sample(story, 400);
  const told = stories.map(async ({ outcomes, retries, reads }) => {
    const sent: Outcome[] = [];
    const { dependency } = open({ retries, breaker_failures: 1_000 });
    const work = async () => {
      const now = outcomes[sent.length] as Outcome;
      sent.push(now);
      if (OUTCOMES[now]) throw OUTCOMES[now];
      return now;
    };
    const ended = await dependency.run({ ...READ, reads }, call, work).catch((error: unknown) => error);
    // Whatever came last is the answer.
    expect(ended).toBe(OUTCOMES[sent.at(-1) as Outcome] ?? 'done');
    expect(sent.length).toBeLessThanOrEqual(retries + 1);
    const again = sent.slice(0, -1);
    const allowed: readonly Outcome[] = reads ? [...NOTHING_HAPPENED, 'lost'] : NOTHING_HAPPENED;
    expect(again.filter((before) => !allowed.includes(before))).toEqual([]);
    // And it is sent again wherever that is allowed.
    if (sent.length <= retries) expect(allowed).not.toContain(sent.at(-1));
    return again.length;
  });
  expect((await Promise.all(told)).filter((again) => again > 0).length).toBeGreaterThan(0);
});
