import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { withStartupClient } from '../../providers/postgres/client/startup-client.ts';
import { readTable, type Table } from '../../providers/postgres/mapped/catalogue.ts';
import {
  describeLayout,
  LIBRARY_LAYOUTS,
  layoutsOf,
  recognise,
  settingsFor,
} from '../../providers/postgres/mapped/library-layouts.ts';
import { fixturesOf, GIVEN_TO_TABLES, loadPostgres } from '../mapped-collections/fixture.ts';
import { askDoctor, openAiServer, serveDocumented, vectorOf } from './documented.ts';
import { type EmptyDatabase, openEmptyDatabase } from './library-database.ts';

/* Tables that libraries filled (`test/mapped-collections/record`), served with the settings that doctor says. */

const FIXTURES = fixturesOf('postgres');
const libraryOf = ({ versions }: (typeof FIXTURES)[number]) => Object.entries(versions)[0]?.join(' ') ?? '';

/** Models of an application's own, which no layout describes. */
const OWN: Readonly<Record<string, string>> = {
  sqlalchemy: 'notes',
  django: 'notes_note',
};
const ownSettings = (table: string) => [
  ...[
    'OMP_MAPPING_PRESET=custom',
    `OMP_MAPPING_TABLE=${table}`,
    'OMP_MAPPING_ID=id',
    'OMP_MAPPING_EMBEDDING=embedding',
  ],
  ...['OMP_MAPPING_CONTENT=content', 'OMP_MAPPING_USER_ID=user_id', 'OMP_MAPPING_CREATED_AT=created_at'],
];

/** What the recorder chose where a setting has an ellipsis. */
const CHOSEN: Readonly<Record<string, string>> = {
  OMP_MAPPING_COLLECTION: 'notes',
  OMP_MAPPING_CONTENT: 'text',
  OMP_MAPPING_USER_PATTERN: 'memories',
};

const cosine = async (a: string, b: string) => {
  const [x, y] = await Promise.all([vectorOf(a, 8), vectorOf(b, 8)]);
  const product = (p: Float32Array, q: Float32Array) =>
    p.reduce((sum, value, at) => sum + value * (q[at] as number), 0);
  // The gateway counts a negative one as 0.
  return Math.max(0, product(x, y) / Math.sqrt(product(x, x) * product(y, y)));
};

/** Vectors of the recorder have length 1 to this precision, within which measures may disagree. */
const TIE = 0.003;

it('every layout was recorded with every version that it names', () => {
  const recorded = FIXTURES.map(libraryOf);
  for (const { versions } of LIBRARY_LAYOUTS) expect(recorded).toEqual(expect.arrayContaining([...versions]));
});

describe('tables that libraries filled', () => {
  let db: EmptyDatabase;
  let openai: Awaited<ReturnType<typeof openAiServer>>;
  beforeAll(async () => {
    [db, openai] = await Promise.all([openEmptyDatabase(), openAiServer()]);
  });
  afterAll(async () => {
    await openai.close();
    await db.close();
  });
  beforeEach(() => db.reset());

  const read = (label: string) =>
    withStartupClient({ connectionString: db.url }, async (client) => {
      const [schema, name] = label.split('.') as [string, string];
      const found = await readTable(client, schema, name, '');
      if ('mistake' in found) throw new Error(found.mistake);
      return found.table;
    });
  /** The settings of a gateway in front of it. */
  const environment = (settings: readonly string[]): Record<string, string> => ({
    ...{
      DATABASE_URL: db.url,
      OMP_POSTGRES_CONNECTIONS: '1',
      OPENAI_BASE_URL: openai.base_url,
      OPENAI_API_KEY: 'none',
    },
    ...{ OMP_EMBEDDER: 'openai', OMP_EMBEDDING_MODEL: 'eight' },
    ...Object.fromEntries(
      settings.map((setting) => {
        const [, name = '', value = ''] = /^(\w+)="?(.*?)"?$/.exec(setting) ?? [];
        return [name, value.replace('…', CHOSEN[name] ?? '')];
      }),
    ),
  });

  it.each(FIXTURES)('$name is recognised as itself and as nothing else', async (fixture) => {
    await loadPostgres(db.sql, fixture);
    const labels = new Set([fixture.collection, ...fixture.points.map(({ table }) => table)]);
    const tables = await Promise.all([...labels].map(read));
    const found = tables.flatMap((table) => layoutsOf(table));
    const own = LIBRARY_LAYOUTS.filter(({ versions }) => versions.includes(libraryOf(fixture)));
    // Of models of an application's own, and of a library that has no row yet, nothing is said.
    if (own.length === 0) return expect(found).toEqual([]);
    expect(found).toHaveLength(1);
    expect(own).toContain(found[0]);
  });

  const served = FIXTURES.filter(
    (fixture) =>
      fixture.library in OWN || LIBRARY_LAYOUTS.some(({ versions }) => versions.includes(libraryOf(fixture))),
  );
  it.each(served)('$name is served as doctor says, and ranked as the library ranks it', async (fixture) => {
    await loadPostgres(db.sql, fixture);
    const own = OWN[fixture.library];
    const table = await read(fixture.collection);
    const recognised = recognise(table);
    const settings = own !== undefined || !recognised ? ownSettings(own ?? '') : settingsFor(recognised.layout, table);
    const env = environment(settings);
    const { status, stdout } = await askDoctor(env);
    expect(status, stdout).toBe(0);
    if (recognised)
      expect(JSON.parse(stdout).findings).toContainEqual(
        expect.objectContaining({ level: 'ok', message: describeLayout(table, recognised) }),
      );
    const { client, close } = await serveDocumented(env);
    try {
      const keys = new Map(Object.entries(fixture.ids).map(([key, id]) => [id, key]));
      const keysOf = (user: string) => [...keys.values()].filter((key) => GIVEN_TO_TABLES.get(key)?.user_id === user);
      for (const user_id of ['ana', 'ben']) {
        const { items } = await client.list({ user_id });
        expect(items.map(({ id }) => keys.get(id)).sort()).toEqual(keysOf(user_id).sort());
        for (const { id, content } of items) expect(content).toBe(GIVEN_TO_TABLES.get(keys.get(id) ?? '')?.text);
        expect(await client.get(items[0]?.id ?? '')).toEqual(items[0]);
      }
      for (const { user_id, text, found } of fixture.searches) {
        const theirs = found.filter((key) => GIVEN_TO_TABLES.get(key)?.user_id === user_id);
        // Spring AI finds nothing beyond a distance.
        const hits = theirs.length === 0 ? [] : await client.search({ user_id, q: text, limit: theirs.length });
        const near = (all: readonly (string | undefined)[]) =>
          Promise.all(all.map((key) => cosine(text, GIVEN_TO_TABLES.get(key ?? '')?.text ?? '')));
        const ours = await near(hits.map(({ memory }) => keys.get(memory.id)));
        expect(ours).toEqual((await near(theirs)).map((value) => expect.closeTo(value, 2)));
        expect(ours.every((value, at) => value <= (ours[at - 1] ?? 1) + TIE)).toBe(true);
      }
    } finally {
      await close();
    }
  });

  it('doctor names a table that a library filled, without a preset', async () => {
    const fixture = FIXTURES.find(({ name }) => name === 'postgres-agno-python-2');
    if (!fixture) throw new Error('not recorded');
    await loadPostgres(db.sql, fixture);
    const { stdout } = await askDoctor(environment([]));
    const settings = `OMP_MAPPING_PRESET=agno OMP_MAPPING_TABLE=notes OMP_MAPPING_USER_ID="meta_data->>'user_id'"`;
    expect(JSON.stringify(JSON.parse(stdout).findings)).toContain(JSON.stringify(settings).slice(1, -1));
  });

  it('a preset of another library is named at the start, with the one that fits', async () => {
    await db.sql('create table notes (id uuid primary key, vector vector(8), payload jsonb, body text, author text)');
    const mapping = { OMP_MAPPING_PRESET: 'haystack', OMP_MAPPING_TABLE: 'notes' };
    const env = environment(Object.entries(mapping).map((each) => each.join('=')));
    await expect(serveDocumented(env)).rejects.toThrow(
      /but not the layout of mem0ai .* a column "body" and a column "author"/,
    );
  });
});

describe('a layout of another version', () => {
  const column = (base: string) => ({ base }) as Table['columns'] extends ReadonlyMap<string, infer C> ? C : never;
  const tableOf = (columns: Readonly<Record<string, string>>) => ({
    columns: new Map(Object.entries(columns).map(([name, type]) => [name, column(type.split('|')[0] as string)])),
    indexes: [],
  });

  const signed = LIBRARY_LAYOUTS.filter(({ signs }) => signs.length > 0);
  it.each(signed.map((layout) => [`${layout.library} ${layout.versions}`, layout]))(
    '%s is named, not guessed',
    (_, layout) => {
      const { columns, signs } = layout as (typeof LIBRARY_LAYOUTS)[number];
      const dropped = Object.keys(columns).find((name) => !signs.includes(name)) as string;
      const { [dropped]: __, ...rest } = columns;
      const found = recognise(tableOf({ ...rest, added_later: 'text' }));
      if (found === undefined || found.differences.length === 0) throw new Error('not named as another version');
      expect(describeLayout({ schema: 'public', name: 'notes' }, found)).toContain('another version made it');
    },
  );
});
