import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Call, type ExportPart, GATEWAY, type Memory, OmpError, type Provider } from '#contract';
import type { Store, StorePart } from '../../src/core/store.ts';
import { startRetention } from '../../src/features/retention/daily-runs.ts';
import { createRetention, judgeBy, openRetention, type RetentionRule } from '../../src/features/retention/retention.ts';
import { CRM, down, failing, HANDBOOK, open as openMounts } from '../stores/mounts-subject.ts';
import { eventually } from '../support/eventually.ts';
import { auditOf, call, contextOf, listOf, memoryOf, openMemory, refTo } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';

const NOW = Date.parse('2026-11-25T00:00:00.000Z');
const DAY_MS = 86_400_000;
const ago = (days: number, from = Date.now()): string => new Date(from - days * DAY_MS).toISOString();

const stored = (more: Partial<Memory>): Memory => ({
  ...memoryOf('u', 'tea'),
  ...{ id: 'mem_1', embedding_model: null, status: null, created_at: ago(100, NOW), updated_at: ago(100, NOW) },
  ...more,
});

describe('[Decision 60] what becomes of a memory', () => {
  it.for<[string, RetentionRule[], Partial<Memory>, unknown]>([
    ['no rule matches', [{ scope: 'chat/*', days: 1 }], { scope: 'chat' }, undefined],
    ['a rule by scope leaves out what has none', [{ scope: '*', days: 1 }], {}, undefined],
    [
      'the scope and the tag match',
      [{ scope: 'a*', tag: 't', days: 1 }],
      { scope: 'a', tags: ['s', 't'] },
      [0, 'delete'],
    ],
    ['the scope alone does not', [{ scope: 'a*', tag: 't', days: 1 }], { scope: 'a', tags: ['s'] }, undefined],
    ['the tag alone does not', [{ scope: 'a*', tag: 't', days: 1 }], { scope: 'b', tags: ['t'] }, undefined],
    ['a rule without either matches everything', [{ days: 100 }], { scope: null }, [0, 'delete']],
    ['not a moment before its days are over', [{ days: 100 }], { created_at: ago(100, NOW + 1) }, [0, 'wait']],
    [
      'the first rule decides, though a later one would delete',
      [{ tag: 't', days: 101 }, { days: 1 }],
      { tags: ['t'] },
      [0, 'wait'],
    ],
    ['null keeps', [{ tag: 'keep', days: null }, { days: 1 }], { tags: ['keep'] }, [0, 'keep']],
    ['also what has a valid_to', [{ tag: 'keep', days: null }], { tags: ['keep'], valid_to: ago(9, NOW) }, [0, 'keep']],
    ['by the last change', [{ days: 50, by: 'updated_at' }], { updated_at: ago(49, NOW) }, [0, 'wait']],
    ['by its creation otherwise', [{ days: 50 }], { updated_at: ago(49, NOW) }, [0, 'delete']],
    ['a time that is not known is no old one', [{ days: 1 }], { created_at: '1970-01-01T00:00:00.000Z' }, [0, 'wait']],
  ])('%s', ([, rules, memory, due]) => {
    const verdict = judgeBy(rules)(stored(memory), NOW);
    expect(verdict && [verdict.rule, verdict.action]).toEqual(due);
  });
});

/** The memory provider with `old` memories that are due, and with these changes. */
async function open(change: (provider: Required<Provider>) => Partial<Provider> = () => ({}), count = 3) {
  const memory = await openMemory('native', contextOf());
  const items = Array.from({ length: count }, (_, n) => ({
    memory: stored({ id: `old-${n}`, created_at: ago(9), updated_at: ago(9) }),
    vector: null,
  }));
  await memory.import({ items, replace: false }, call);
  const store: Store = storeOf({ ...memory, ...change(memory) });
  const left = async () => (await memory.list(listOf('u', { limit: 1_000 }), call)).map(({ id }) => id).sort();
  return { memory, store, left };
}

const RULES = [{ tag: 'keep', days: null }, { days: 7 }] as const;

async function passOn(store: Store, rules: readonly RetentionRule[] = RULES) {
  const own = new Call('retention', GATEWAY);
  const counts = { looked: 0, deleted: 0, pages: 0 };
  for await (const { looked, deleted } of createRetention(rules).pass({ store, dry_run: false }, own)) {
    counts.looked += looked;
    counts.deleted += deleted.length;
    counts.pages++;
  }
  return { ...counts, ...own.leftOut };
}

describe.each([true, false])(
  '[Decision 60] a memory that changes between the look and the delete (etags: %s)',
  (etags) => {
    it.for([
      [
        'gets a tag that keeps it',
        async ({ update }: Required<Provider>): Promise<unknown> =>
          update({ ref: refTo('old-1'), patch: { tags: ['keep'] }, vector: null }, call),
      ],
      ['is deleted', async (memory: Required<Provider>): Promise<unknown> => memory.delete(refTo('old-1'), call)],
    ] as const)('stays as it is: it %s', async ([what, act]) => {
      const { store, left } = await open((memory) => ({
        capabilities: { ...memory.capabilities, etags },
        async export(query, own): Promise<ExportPart> {
          const part = await memory.export(query, own);
          await act(memory);
          return part;
        },
      }));
      expect(await passOn(store)).toMatchObject({ looked: 3, deleted: 2 });
      expect(await left()).toEqual(what === 'is deleted' ? [] : ['old-1']);
    });
  },
);

it('[Decision 60] a pass goes page by page over all memories', async () => {
  const { store, left } = await open(undefined, 450);
  expect(await passOn(store)).toMatchObject({
    looked: 450,
    deleted: 450,
    pages: expect.toSatisfy((pages) => pages >= 3),
  });
  expect(await left()).toEqual([]);
});

it('[Decision 60] what deletes by itself has entries of no caller', async () => {
  const { store, memory } = await open();
  await passOn(store);
  const entries = (await memory.audit.read(auditOf('u'), call)).filter(({ action }) => action === 'delete');
  expect(entries.map(({ app, request_id }) => [app, request_id])).toEqual(Array(3).fill([null, 'retention']));
});

describe('[Decision 60] [Decision 49] several stores', () => {
  it('are walked one after another, by the scopes that clients see; one that fails is left out', async () => {
    const { all, add, client, user_id } = await openMounts([HANDBOOK, { ...CRM, required: false, current: failing }]);
    await Promise.all([add('a'), add('b', 'docs/handbook/x')]);
    const own = new Call('retention', GATEWAY);
    const seen: string[] = [];
    const retention = createRetention([{ scope: 'docs/handbook/*', days: null }]);
    for await (const { looked, kept } of retention.pass({ store: all, dry_run: true }, own))
      seen.push(`${looked} ${kept}`);
    // Empty pages are those at the end of a store.
    expect(seen.filter((page) => page !== '0 ')).toEqual(['1 ', '1 0']);
    expect(own.leftOut).toEqual({ 'x-partial': ['crm'] });
    expect((await client.list({ user_id, scope: 'docs/*' })).items).toHaveLength(1);
  });

  it('an optional one that cannot delete does not keep those after it from being walked', async () => {
    const refusing = (one: Store): Store => ({
      ...one,
      delete: () => down('crm'),
    });
    const { all, add, client, user_id } = await openMounts([{ ...CRM, required: false, current: refusing }, HANDBOOK]);
    await Promise.all([add('a', CRM.mount), add('b', HANDBOOK.mount)]);
    expect(await passOn(all, [{ days: 0 }])).toMatchObject({ deleted: 1, 'x-partial': ['crm'] });
    expect((await client.list({ user_id })).items.map(({ content }) => content)).toEqual(['a']);
  });

  it('the start fails if none of them can be walked, and names those that cannot otherwise', async () => {
    const { store } = await open(() => ({ export: undefined }));
    const log = recordingLog();
    expect(() => openRetention(RULES, store, log)).toThrow('retention (OMP_RETENTION) has no effect');
    expect(openRetention([], store, log)).toBe(undefined);
    const unable = { ...CRM, current: (one: Store): Store => ({ ...one, delete: undefined }) };
    const { all } = await openMounts([HANDBOOK, unable]);
    expect(openRetention(RULES, all, log)?.rules).toEqual(RULES);
    expect(log.lines.map(({ fields }) => fields)).toEqual([{ stores: ['crm'] }]);
  });

  it.each([
    [true, false, 1],
    [true, true, 0],
    [false, false, 0],
  ])(
    'the log names mapped ones without a time of creation (mapped: %s, temporal: %s)',
    async (mapped, temporal, count) => {
      const { store } = await open(({ capabilities }) => ({ capabilities: { ...capabilities, mapped, temporal } }));
      const log = recordingLog();
      openRetention(RULES, store, log);
      expect(log.lines).toHaveLength(count);
      for (const { message } of log.lines) expect(message).toContain('no times of creation');
    },
  );
});

describe('[Decision 60] by itself', () => {
  const start = (store: Store) => {
    const log = recordingLog();
    const retention = createRetention(RULES);
    const runs = startRetention({ retention, store, log, first_ms: 0, retry_ms: 1 });
    onTestFinished(runs.close);
    return { log, retention, runs };
  };

  it('a gateway deletes once, and counts', async () => {
    const { store, left } = await open();
    const { retention, log } = start(store);
    await eventually(() => expect(retention.stats().completed).toBeGreaterThan(0));
    expect(retention.stats()).toMatchObject({ deleted: 3, failed: 0 });
    expect(await left()).toEqual([]);
    expect(log.lines).toMatchObject([{ level: 'info', fields: { deleted: 3 } }]);
  });

  const broken = (options?: object) => new OmpError('provider_error', 'it does not want to', options);
  it.each<[string, number, (id: string, asked: number) => OmpError | false, object]>([
    [
      'a memory that cannot be deleted stays, is counted, and does not hold those after it',
      3,
      (id) => id === 'old-1' && broken(),
      {
        ...{ deleted: 2, failed: 1, left: ['old-1'], asked: 3 },
        ...{ warned: { failed: 1, err: { message: 'it does not want to' } }, told: { deleted: 2 } },
      },
    ],
    [
      'a store that is down is not asked for the next memory, and the pass goes on later',
      3,
      (_, asked) => asked === 2 && broken({ down: true }),
      { left: [], asked: 4 },
    ],
    [
      'nor is one that says when to try again',
      3,
      (_, asked) => asked === 2 && broken({ retryAfter: 1 }),
      { left: [], asked: 4 },
    ],
    [
      'memories whose delete takes too long every time are passed over when the pass goes on',
      3,
      (id) => id !== 'old-2' && broken({ down: true }),
      { left: ['old-0', 'old-1'] },
    ],
    [
      'many memories that cannot be deleted do not hold those after them for ever',
      100,
      (id) => id !== 'old-99' && broken(),
      { left: expect.toSatisfy((left) => left.length === 99 && !left.includes('old-99')) },
    ],
    [
      'a store that fails again and again is not asked for every memory, and the pass goes on later',
      12,
      (_, asked) => asked <= 10 && broken(),
      { left: [], asked: 22 },
    ],
  ])('%s', async (_, count, failing, due) => {
    let asked = 0;
    const { store, left } = await open(
      (memory) => ({
        delete: async (ref, own) => {
          const failure = failing(ref.id, ++asked);
          if (failure) throw failure;
          return memory.delete(ref, own);
        },
      }),
      count,
    );
    const { retention, log } = start(store);
    await eventually(() => expect(retention.stats().completed).toBeGreaterThan(0));
    const [warned, told] = [log.lines[0]?.fields, log.lines.at(-1)?.fields];
    expect({ ...retention.stats(), left: await left(), asked, warned, told }).toMatchObject(due);
    if ('asked' in due) expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'info']);
    expect(JSON.stringify(log.lines)).not.toContain('old-');
  });

  it('a frozen store keeps everything, and the pass goes on when it takes changes again', async () => {
    const { store, memory, left } = await open();
    await memory.freezing.freeze({ by: 'operator' }, call);
    const { retention, log } = start(store);
    await eventually(() => expect(log.lines.length).toBeGreaterThan(1));
    expect(await left()).toHaveLength(3);
    expect(retention.stats()).toEqual({ deleted: 0, failed: 0, completed: undefined });
    expect(JSON.stringify(log.lines)).not.toMatch(/tea|old-/);
    await memory.freezing.unfreeze(call);
    await eventually(() => expect(retention.stats().completed).toBeGreaterThan(0));
    expect(await left()).toEqual([]);
  });

  it('a store that does not answer is looked at again, and those before it are not', async () => {
    const { all } = await openMounts([{ ...CRM, required: false, current: failing }]);
    const { parts, ...mounts } = all.mounts as NonNullable<Store['mounts']>;
    const [root, ...others] = parts as [StorePart, ...StorePart[]];
    const walk = vi.fn(root.store.export);
    const watched = { ...root, store: { ...root.store, export: walk } };
    const { retention, log } = start({ ...all, mounts: { ...mounts, parts: [watched, ...others] } });
    await eventually(() => expect(log.lines.length).toBeGreaterThan(2));
    expect(walk).toHaveBeenCalledTimes(1);
    expect(retention.stats().completed).toBe(undefined);
  });

  it('stops when the gateway closes', async () => {
    let asked = 0;
    const { store, left } = await open((memory) => ({
      async delete(ref, own) {
        asked++;
        await own.unlessAborted(new Promise(() => {}));
        return memory.delete(ref, own);
      },
    }));
    const { runs } = start(store);
    await eventually(() => expect(asked).toBe(1));
    await runs.close();
    expect(asked).toBe(1);
    expect(await left()).toHaveLength(3);
  });
});
