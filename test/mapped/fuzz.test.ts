import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import type { Provider, Memory as Stored } from '#contract';
import { list } from '../../src/verbs/get-list-update-delete.ts';
import { search } from '../../src/verbs/search.ts';
import { MemoryFields } from '../../src/verbs/wire-memory.ts';
import { checkAgreement } from '../differential/check.ts';
import { openModel, openStore, type WorldStore } from '../differential/world.ts';
import type { Subject } from '../support/subject.ts';
import type { WireHit, WirePage } from '../support/wire.ts';
import { COLUMNS, DOCUMENT, type MappedTable, MIXED, openShape, openTable, vectorOf } from './tables.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? 300);
const SEED = Number(process.env.OMP_TEST_SEED ?? 4);
/** Of the comparison with the memory provider. */
const SEQUENCES = Number(process.env.OMP_TEST_RUNS ?? 20);
const KEYS = [
  'text',
  'owner',
  'labels',
  'source',
  'confidence',
  'times',
  'supersedes',
  'more',
  'user_id',
  'scope',
  'from',
];
const INNER = ['id', 'created', 'updated', 'valid', 'from', 'to', 'app', 'type', 'ref', 'x-a', 'a'];

/** What stands in rows of others, and things that resemble what belongs there. */
const leaf = fc.oneof(
  fc.jsonValue({ maxDepth: 1 }),
  fc.constantFrom<unknown[]>(
    'ana',
    '',
    'explicit',
    ['a', 1, null, ['b']],
    1e300,
    -1,
    0,
    1.5,
    1e11,
    253402300800,
    1e-320,
  ),
  fc.constantFrom('2024-02-30', '2024-01-01T24:61:00Z', 'soon', '9999-12-31T23:59:59-23:59', '0000-01-01', '20240101'),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom('\u0000', '\ud800', 'a\u0000b', '\\u0000', 'é\u0301', ' '.repeat(5)),
);
const dictionary = (keys: readonly string[], values: fc.Arbitrary<unknown>) =>
  fc.dictionary(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...keys) }, fc.string({ maxLength: 3 })), values, {
    maxKeys: 6,
  });
const inner = dictionary(INNER, fc.oneof(leaf, dictionary(INNER, leaf)));
const anything = fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }), inner);
const document = fc.oneof(
  { weight: 1, arbitrary: leaf },
  { weight: 8, arbitrary: dictionary(KEYS, anything) },
  // Somebody's, so that it is shown.
  {
    weight: 8,
    arbitrary: dictionary(KEYS, anything).map((rest) => ({ ...rest, text: 't', owner: { id: 'ana' }, user_id: 'ana' })),
  },
);

/** Neither NUL nor half a pair of surrogates is in any jsonb. */
const asJsonb = (value: unknown): string =>
  JSON.stringify(value, (_, inner) => (typeof inner === 'string' ? inner.replaceAll('\0', '').toWellFormed() : inner));

describe('any JSON in a row of another application', () => {
  const tables: MappedTable[] = [];
  const subjects: Subject[] = [];
  beforeAll(async () => {
    for (const shape of [DOCUMENT, MIXED]) {
      const table = await openTable(shape);
      tables.push(table);
      subjects.push(await table.serve());
    }
  });
  afterAll(async () => {
    for (const subject of subjects) await subject.close();
    for (const table of tables) await table.close();
  });

  /** No verb that reads may fail; what is shown has to be what the protocol describes. */
  const read = async ({ client }: Subject, id: string) => {
    const page = await client.ask('/memories', { user_id: 'ana', tag: undefined });
    expect(page.status, page.text).toBe(200);
    const listed = ((list.success.schema as z.ZodType).parse(page.body) as WirePage).items;
    const tagged = await client.ask('/memories', { user_id: 'ana', tag: 'a', since: '1960-01-01', limit: 1 });
    expect(tagged.status, tagged.text).toBe(200);
    const found = await client.ask('/memories/search', { user_id: 'ana', q: 'text', scope: 's' });
    expect(found.status, found.text).toBe(200);
    const { body } = await client.ask('/memories/search', { user_id: 'ana', q: 'text' });
    const { results } = (search.success.schema as z.ZodType).parse(body) as { results: readonly WireHit[] };
    expect(results.map(({ memory }) => memory)).toEqual(listed);
    const got = await client.ask(client.byId(id));
    if (got.status === 200 && (got.body as { user_id: string }).user_id === 'ana') {
      expect(listed).toEqual([MemoryFields.parse(got.body)]);
    } else {
      expect([200, 404], got.text).toContain(got.status);
      expect(listed).toEqual([]);
    }
    return listed.length;
  };

  it('[SPEC GET /memories] [SPEC GET /memories/search] [SPEC GET /memories/{id}] in jsonb is shown or hidden', {}, async () => {
    const [table, subject] = [tables[0] as MappedTable, subjects[0] as Subject];
    const [id, Vector] = ['00000000-0000-4000-8000-000000000001', await vectorOf('text')];
    let shown = 0;
    const property = fc.asyncProperty(document, async (doc) => {
      await table.sql(`truncate ${table.name}`);
      const stored = asJsonb(doc);
      await table.insert({ id, doc: stored, Vector });
      shown += await read(subject, id);
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
    expect(shown).toBeGreaterThan(RUNS / 5);
    expect(shown).toBeLessThan(RUNS);
  });

  it('[SPEC GET /memories] [SPEC GET /memories/search] [SPEC GET /memories/{id}] in json, which accepts more than jsonb, is shown or hidden', {}, async () => {
    const [table, subject] = [tables[1] as MappedTable, subjects[1] as Subject];
    const emb = await vectorOf('text');
    let shown = 0;
    const times = fc.constantFrom('2024-01-01', 'infinity', '-infinity', '294276-12-31', '4000-01-01 BC', '0001-01-01');
    const untils = fc.constantFrom('0', '-1', '9223372036854775807', '-9223372036854775808', '253402300800000', null);
    const row = fc.tuple(
      document,
      times,
      untils,
      fc.oneof(leaf, fc.array(leaf)),
      fc.constantFrom('NaN', '2', '0.5', null),
    );
    const property = fc.asyncProperty(row, async ([meta, made, until, labels, sure]) => {
      await table.sql(`truncate ${table.name}`);
      const kept = asJsonb(labels);
      await table.insert({ number: 1, body: 'text', meta: JSON.stringify(meta), emb, made, until, labels: kept, sure });
      shown += await read(subject, '1');
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
    expect(shown).toBeGreaterThan(RUNS / 5);
    expect(shown).toBeLessThan(RUNS);
  });
});

/** A mapped table has no status; memory does. */
function withStatus(provider: Provider): Provider {
  const { add, get, update, list, search } = provider as Required<Provider>;
  const done = <Found extends Stored | undefined>(memory: Found): Found => memory && { ...memory, status: 'done' };
  return {
    ...provider,
    add: async (...given) => done(await add(...given)),
    get: async (ref, call) => done(await get(ref, call)),
    update: async (...given) => done(await update(...given)),
    list: async (query, call) => (await list(query, call)).map(done),
    search: async (query, call) => (await search(query, call)).map((hit) => ({ ...hit, memory: done(hit.memory) })),
  };
}

describe('a mapped table gives the same answers as the memory provider', () => {
  const opened: WorldStore[] = [];
  afterAll(async () => {
    for (const { subject } of opened) await subject.close();
  });

  it('[Decision 1] [Decision 3] [Decision 4] [Decision 14] [SPEC GET /memories/search order] for random requests', {}, async () => {
    opened.push(await openModel());
    for (const shape of [COLUMNS, DOCUMENT]) {
      opened.push(await openStore(shape.label, (options) => openShape(shape, { ...options, alter: withStatus })));
    }
    const [model, ...others] = opened as [WorldStore, ...WorldStore[]];
    await checkAgreement(model, others, { runs: SEQUENCES, seed: SEED, shrink: true });
  });
});
