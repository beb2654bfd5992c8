import pg from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Query } from '../../providers/postgres/client/connections.ts';
import { examine } from '../../providers/postgres/mapped/examine.ts';
import { createMappedStatements } from '../../providers/postgres/mapped/mapped-statements.ts';
import { Mapping } from '../../providers/postgres/mapped/mapping.ts';
import { createReading } from '../../providers/postgres/mapped/row-reading.ts';
import { createSearchStatements } from '../../providers/postgres/mapped/vector-search.ts';
import { conditions } from '../../providers/postgres/sql/conditions.ts';
import { findingsOn, remediesOf, type TestDatabase, testDatabase, told } from '../postgres/databases.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call, listOf, refTo, searchFor } from '../support/requests.ts';

const DIMENSIONS = 8;
const MODE = { ranking: { mode: 'vector', keyword_weight: 0.5 } } as const;

interface Laid {
  readonly ddl: readonly string[];
  /** Inserts one row of this user; parameters are the user, a text and a vector as text. */
  readonly insert: string;
  readonly mapping: object;
  readonly dimensions?: number;
}

const COLUMNS: Laid = {
  ddl: [
    `create table notes (id uuid primary key default gen_random_uuid(), owner text, body text, tags text[] default '{a}',
       embedding vector(${DIMENSIONS}))`,
  ],
  insert: 'insert into notes (owner, body, embedding) values ($1, $2, $3)',
  mapping: {
    preset: 'custom',
    table: 'notes',
    id: 'id',
    content: 'body',
    user_id: 'owner',
    tags: 'tags',
    embedding: 'embedding',
  },
};

const json = (type: 'json' | 'jsonb', vector: string, more: object = {}): Laid => ({
  ddl: [`create table docs (id bigserial primary key, content text, metadata ${type}, embedding ${vector})`],
  insert: `insert into docs (content, metadata, embedding)
     values ($2::text, json_build_object('user_id', $1::text, 'who', json_build_object('id', $1::text), 'tags', json_build_array('a')), $3)`,
  mapping: {
    preset: 'custom',
    table: 'docs',
    id: 'id',
    content: 'content',
    user_id: `metadata->>'user_id'`,
    tags: `metadata->'tags'`,
    embedding: 'embedding',
    ...more,
  },
});

async function filled({ ddl, insert, dimensions = DIMENSIONS }: Laid, rows = 40): Promise<TestDatabase> {
  const db = await testDatabase();
  await db.sql('create extension vector');
  for (const statement of ddl) await db.sql(statement);
  const embedder = hashingEmbedder(dimensions);
  for (let i = 0; i < rows; i++) {
    const [vector] = await embedder.embed([`text ${i}`], 'document', call);
    await db.sql(insert, [`user-${i % 4}`, `text ${i}`, JSON.stringify([...(vector ?? [])])]);
  }
  return db;
}

const look = (url: string, { mapping, dimensions = DIMENSIONS }: Laid, options: object = {}) =>
  findingsOn(url, { mapping, ...options }, { ...MODE, embedder: hashingEmbedder(dimensions) });

/** Plans of the statements of the verbs if the planner uses an index whenever it can. */
async function plansOf(url: string, { mapping, dimensions = DIMENSIONS }: Laid) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const embedder = hashingEmbedder(dimensions);
    const { layout, mistakes } = await examine(client, Mapping.parse(mapping), embedder);
    if (!layout) throw new Error(mistakes.join('\n'));
    const reading = createReading(layout, 'model');
    const statements = createMappedStatements(layout, reading);
    const search = createSearchStatements(layout, reading, statements);
    const [vector] = (await embedder.embed(['text'], 'query', call)) as [Float32Array];
    const [row] = (
      await client.query<{ id: string; stored: string }>(
        `select ${layout.id.read} as id, ${layout.fields.user_id?.read} as stored from ${layout.from} limit 1`,
      )
    ).rows;
    const { id, stored } = row as { id: string; stored: string };
    const user = layout.owner.toUser(stored) as string;
    const nearest = { query: searchFor(user, 'text'), vector };
    /** The plan for these values, and the generic one. */
    const explain = async ({ statement, values }: Query, ...settings: readonly string[]) => {
      const plans: string[] = [];
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        const set = ['enable_seqscan = off', `plan_cache_mode = ${mode}`, ...settings].map(
          (each) => `set local ${each}`,
        );
        await client.query(['begin', ...set].join('; '));
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${statement.text}`, [...values]);
        await client.query('rollback');
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      }
      return plans.join('\n');
    };
    const after = { created_at: '2024-01-01T00:00:00.000Z', id };
    const ofUser = [
      statements.list(listOf(user)),
      // Without times a page of so few rows may use the key.
      ...(layout.fields.created_at
        ? [{ after }, { since: after.created_at, until: after.created_at }].map((more) =>
            statements.list(listOf(user, more)),
          )
        : []),
      ...(layout.fields.scope ? [statements.list(listOf(user, { scope: 's*', within: ['s', 't/*'] }))] : []),
      search.exact(nearest),
      search.bounded(nearest, 5_000),
    ];
    const byOwner: string[] = [];
    for (const query of ofUser) byOwner.push((await explain(query)).replaceAll('""', '"'));
    const plans = [
      ...byOwner,
      await explain(statements.select(refTo(id)) as Query),
      // Only the vector index can sort.
      await explain(search.indexed(nearest) as Query, 'enable_sort = off', 'enable_bitmapscan = off'),
    ];
    if ('writable' in mapping) {
      const patch = { content: 'x', tags: ['b'] };
      for (const query of [
        statements.update(refTo(id), { patch, vector, max_bytes: 1e9 }),
        statements.remove(refTo(id)),
      ])
        expect(await explain(query as Query)).toContain('_pkey');
    }
    // Alone, since the owner's index would do as well.
    if (layout.hasTags) {
      const where = conditions();
      where.and(layout.hasTags(where, ['a']));
      const text = `select from ${layout.from} where ${where}`;
      plans.push(await explain({ statement: { name: '', text, weight: 'small' }, values: where.values }));
    }
    return { byOwner, all: plans.join('\n').replaceAll('""', '"') };
  } finally {
    await client.end();
  }
}

describe('doctor on a mapped table', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  it('[Decision 25] detects vectors of another model of the same length', async () => {
    const laid = {
      ...COLUMNS,
      ddl: COLUMNS.ddl.map((text) => text.replace('vector(8)', 'vector(64)')),
      dimensions: 64,
    };
    const db = await filled(laid);
    const asked = hashingEmbedder(64);
    const as = (embed: typeof asked.embed) =>
      findingsOn(db.url, { mapping: laid.mapping }, { ...MODE, embedder: { ...asked, model: 'other', embed } });
    const other = await as((texts, purpose, by) =>
      asked.embed(
        texts.map((text) => [...text].reverse().join('')),
        purpose,
        by,
      ),
    );
    expect(told(other, 'problem')).toEqual([
      expect.stringMatching(
        /^embedding: "other" did not make the stored vectors: 10 stored texts .* OMP_EMBEDDING_MODEL/,
      ),
    ]);
    // A title before each text.
    const related = await as(async (texts, purpose, by) => {
      const plain = await asked.embed(texts, purpose, by);
      return plain.map((vector) => vector.map((value, i) => value + (i < 32 ? 0.1 : -0.1)));
    });
    expect(told(related, 'problem')).toEqual([]);
    expect(told(related, 'warning')).toContainEqual(
      expect.stringMatching(/^embedding: .* the embedded text may contain more/),
    );
    const broken = await as(() => Promise.reject(new Error('down')));
    expect(told(broken, 'problem')).toEqual([
      expect.stringMatching(/^embedding: whether the embedder made .* could not/),
    ]);
    expect(JSON.stringify([other, related, broken])).not.toContain('text 1');
  });

  it('[Decision 25] detects a mapping of a user or a time that no row has', async () => {
    const docs = json('jsonb', 'vector(8)', { user_id: `metadata->>'userid'`, created_at: `metadata->>'made'` });
    const db = await filled(docs);
    expect(told(await look(db.url, docs), 'problem')).toEqual([
      expect.stringMatching(
        /^mapping: no row of public.docs has both a user \(OMP_MAPPING_USER_ID\) and a text \(OMP_MAPPING_CONTENT\)/,
      ),
    ]);
    const owned = { ...docs, mapping: { ...docs.mapping, user_id: `metadata->>'user_id'` } };
    const findings = await look(db.url, owned);
    expect(told(findings, 'problem')).toEqual([]);
    expect(told(findings, 'warning')).toContainEqual(
      expect.stringMatching(/^mapping: OMP_MAPPING_CREATED_AT: none of 40 rows of public.docs has a time there/),
    );
    await db.sql('truncate docs');
    expect(told(await look(db.url, docs), 'problem')).toEqual([]);
  });

  it('[Decision 25] compares the zone of the server, where times have none', async () => {
    const laid = {
      ...COLUMNS,
      ddl: [...COLUMNS.ddl, 'alter table notes add written timestamp default now(), add changed timestamptz'],
      mapping: { ...COLUMNS.mapping, created_at: 'written', updated_at: 'changed' },
    };
    const db = await filled(laid);
    const zones = async (level: 'ok' | 'warning') =>
      told(await look(db.url, laid), level).filter((each) => each.includes('time zone'));
    const utc = 'mapping: "written" of "public"."notes" has no time zone and is read as UTC, the zone of the server';
    await db.sql(`do $$ begin execute format('alter database %I set timezone to ''UTC''', current_database()); end $$`);
    expect([await zones('ok'), await zones('warning')]).toEqual([[utc], []]);
    // In London only half of the year differs.
    for (const zone of ['America/New_York', 'Europe/London']) {
      await db.sql(
        `do $$ begin execute format('alter database %I set timezone to ''${zone}''', current_database()); end $$`,
      );
      expect([await zones('ok'), await zones('warning')]).toEqual([
        [],
        [
          expect.stringMatching(
            `^mapping: "written" of "public"."notes" has no time zone and is read as UTC, and the zone of the server is ${zone}: .* \\("written" at time zone '${zone}'\\)$`,
          ),
        ],
      ]);
    }
  });

  it('reports a mapping that fits, and changes nothing', async () => {
    const db = await filled(COLUMNS);
    await db.sql('analyze notes');
    const before = await db.state();
    const findings = await look(db.url, COLUMNS);
    expect(told(findings, 'problem')).toEqual([]);
    expect(told(findings, 'ok')).toEqual(
      expect.arrayContaining([
        'mapping: OMP_MAPPING_PRESET=custom fits "public"."notes", which is read-only',
        'embedding: vector(8) in embedding fits the vectors of "test-trigram-hashing"',
        'embedding: "test-trigram-hashing" made the stored vectors: 10 stored texts embedded again have a median cosine of 1.00 with their stored vectors',
        'size: about 40 rows, of about 4 users, about 10 each on average; the largest has about 10 (25 %)',
        'indexes: users with up to 10000 rows are searched exactly, and no user has more by the estimate: no vector index is needed',
      ]),
    );
    expect(JSON.stringify(findings)).not.toContain('user-1');
    expect(await db.state()).toEqual(before);
    // Of a view there are neither sizes nor indexes to tell.
    await db.sql('create view seen as select * from notes');
    const ofView = await look(db.url, { ...COLUMNS, mapping: { ...COLUMNS.mapping, table: 'seen' } });
    expect(told(ofView, 'problem')).toEqual([]);
    expect(ofView.filter(({ area, level }) => area === 'size' || (area === 'indexes' && level !== 'ok'))).toEqual([]);
  });

  it.each([
    ['with a length', COLUMNS],
    ['without', json('jsonb', 'vector')],
  ])('checks the rest if the embedder fails: a column %s', async (_, laid) => {
    const db = await filled(laid);
    const findings = await findingsOn(db.url, { mapping: laid.mapping }, { ...MODE, embedder: undefined });
    expect(told(findings, 'problem')).toEqual([]);
    expect(told(findings, 'ok').join('\n')).toContain('was not compared with the embedder, which does not answer');
    expect(told(findings, 'warning')).toContain('indexes: no index leads to the rows of a user');
  });

  it('needs the extension', async () => {
    const db = await testDatabase();
    await db.sql('create table notes (id int primary key, owner text, body text, embedding real[])');
    const problems = told(await look(db.url, COLUMNS), 'problem').join('\n');
    expect(problems).toMatch(/^extension: pgvector \S+ is on this server, but not created in this database$/m);
  });

  it('reports that ANALYZE has never run, except for an empty table', async () => {
    const empty = await filled(COLUMNS, 0);
    expect(told(await look(empty.url, COLUMNS), 'warning').join('\n')).not.toContain('ANALYZE');
    const db = await filled(COLUMNS);
    const findings = await look(db.url, COLUMNS);
    expect(told(findings, 'warning').join('\n')).toContain('size: ANALYZE has never run');
    expect(JSON.stringify(findings)).not.toContain('by the estimate');
    expect(told(findings, 'ok').join('\n')).toContain('without statistics it is unknown whether a user has more');
    for (const sql of remediesOf(findings).filter((each) => each.startsWith('analyze'))) await db.sql(sql);
    expect(told(await look(db.url, COLUMNS), 'warning').join('\n')).not.toContain('ANALYZE');
  });
});

describe('a suggested index is used, and not suggested again', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  const LAYOUTS: Readonly<Record<string, { laid: Laid; suggested: readonly RegExp[] }>> = {
    'columns of their own': {
      laid: COLUMNS,
      suggested: [/\("owner", "id"\)/, /hnsw \("embedding" .*vector_cosine_ops\)/, /gin \("tags"\)/],
    },
    'every field': {
      laid: {
        ...COLUMNS,
        ddl: COLUMNS.ddl.map((text) =>
          text.replace('body text', "body text, folder text default 's', at timestamptz default now()"),
        ),
        mapping: { ...COLUMNS.mapping, scope: 'folder', created_at: 'at', writable: true },
      },
      suggested: [/"owner"/, /hnsw/, /gin/],
    },
    'a path in jsonb': {
      laid: json('jsonb', `vector(${DIMENSIONS})`),
      suggested: [
        /\(\("metadata" ->> 'user_id'\)\), "id"\)/,
        /hnsw/,
        /gin \(\(\("metadata" -> 'tags'\)\) jsonb_path_ops\)/,
      ],
    },
    'a longer path': {
      laid: json('jsonb', `vector(${DIMENSIONS})`, { user_id: `metadata->'who'->>'id'` }),
      suggested: [/\(\(\("metadata" -> 'who'\) ->> 'id'\)\), "id"\)/, /hnsw/, /gin/],
    },
    'a path in json': {
      laid: json('json', `vector(${DIMENSIONS})`),
      suggested: [/\(\("metadata" ->> 'user_id'\)\), "id"\)/, /hnsw/],
    },
    'vectors without a length': {
      laid: json('jsonb', 'vector'),
      suggested: [/user_id/, /hnsw \(\("embedding"::"public"\.vector\(8\)\) "public"\.vector_cosine_ops\)/, /gin/],
    },
    'vectors in half precision': {
      laid: json('jsonb', `halfvec(${DIMENSIONS})`),
      suggested: [/user_id/, /hnsw \("embedding" "public"\.halfvec_cosine_ops\)/, /gin/],
    },
    'vectors too long for single precision': {
      laid: { ...json('jsonb', 'vector(2001)'), dimensions: 2001 },
      suggested: [/user_id/, /hnsw \(\("embedding"::"public"\.halfvec\(2001\)\) "public"\.halfvec_cosine_ops\)/, /gin/],
    },
    'names that need quotes, with a time, and ids that are not the key': {
      laid: {
        ddl: [
          `create table "The ""Notes""" (n serial primary key, "Node Id" varchar, "userId" uuid, "pageContent" text, at timestamptz, embedding vector(${DIMENSIONS}))`,
        ],
        insert: `insert into "The ""Notes""" ("Node Id", "userId", "pageContent", at, embedding) values (md5($2), md5($1)::uuid, $2::text, now(), $3)`,
        mapping: {
          preset: 'custom',
          table: 'The "Notes"',
          id: '"Node Id"',
          content: '"pageContent"',
          user_id: '"userId"',
          created_at: 'at',
          embedding: 'embedding',
        },
      },
      suggested: [/on "public"\."The ""Notes""" \("userId", "at", "Node Id"\)/, /\("Node Id"\)/, /hnsw/],
    },
  };

  it.each(Object.entries(LAYOUTS))('%s', async (_, { laid, suggested }) => {
    const db = await filled(laid);
    await db.sql('analyze');
    const large = { large_user_rows: 5 };
    const missing = (await look(db.url, laid, large)).filter(
      ({ area, level }) => area === 'indexes' && level === 'warning',
    );
    const statements = remediesOf(missing);
    expect(statements).toEqual(suggested.map((each) => expect.stringMatching(each)));
    for (const sql of statements) {
      expect(sql).toMatch(/^create index concurrently on /);
      await db.sql(sql);
    }
    await db.sql('analyze');
    const made = await db.sql<{ name: string }>(
      `select c.relname as name from pg_index x join pg_class c on c.oid = x.indexrelid where not x.indisprimary and c.relnamespace = 'public'::regnamespace order by c.oid`,
    );
    expect(made).toHaveLength(statements.length);
    const { byOwner, all } = await plansOf(db.url, laid);
    for (const plan of byOwner) expect(plan.split(made[0]?.name ?? '').length, plan).toBeGreaterThanOrEqual(3);
    for (const { name } of made) expect(all).toContain(name);
    const after = await look(db.url, laid, large);
    expect(told(after, 'warning').filter((each) => each.startsWith('indexes'))).toEqual([]);
    expect(told(after, 'ok').join('\n')).toContain('others through the vector index');
    expect(told(after, 'ok').join('\n')).toContain('of about 4 users');
  });

  it('reports that a path without an index has no statistics, and accepts a containment index on jsonb', async () => {
    const laid = json('jsonb', 'vector');
    const db = await filled(laid);
    await db.sql('analyze');
    const findings = await look(db.url, laid);
    expect(told(findings, 'ok')).toContain('size: about 40 rows, their spread over users is unknown');
    expect(told(findings, 'warning')).toContain('indexes: no index leads to the rows of a user');
    await db.sql('create index on docs using gin (metadata jsonb_path_ops)');
    expect(told(await look(db.url, laid), 'warning')).not.toContain('indexes: no index leads to the rows of a user');
  });

  it('rejects a partial index and one whose build failed', async () => {
    const db = await filled(COLUMNS);
    await db.sql(`create index on notes (owner) where owner = 'user-1'`);
    await db.sql('create index broken on notes (owner)');
    await db.sql(`update pg_index set indisvalid = false where indexrelid = 'broken'::regclass`);
    expect(told(await look(db.url, COLUMNS), 'warning')).toContain('indexes: no index leads to the rows of a user');
  });

  it('suggests no "concurrently" for a partitioned table', async () => {
    const laid: Laid = {
      ...COLUMNS,
      ddl: [
        `create table notes (id int generated always as identity, owner text, body text, tags text[], embedding vector(${DIMENSIONS}), primary key (id)) partition by hash (id)`,
        'create table notes_1 partition of notes for values with (modulus 2, remainder 0)',
        'create table notes_2 partition of notes for values with (modulus 2, remainder 1)',
      ],
    };
    const db = await filled(laid);
    await db.sql('analyze');
    const statements = remediesOf((await look(db.url, laid)).filter(({ area }) => area === 'indexes'));
    expect(statements).toEqual(['create index on "public"."notes" ("owner", "id");']);
    for (const sql of statements) await db.sql(sql);
    expect(told(await look(db.url, laid), 'warning').filter((each) => each.startsWith('indexes'))).toEqual([]);
  });

  it('suggests the join index and the vector index for a separate table of vectors', async () => {
    const laid: Laid = {
      ddl: [
        `create table store (prefix text, key text, value jsonb, created_at timestamptz default now(), updated_at timestamptz default now(), expires_at timestamptz, primary key (prefix, key))`,
        `create table store_vectors (prefix text, key text, field_name text default 'text', embedding vector(${DIMENSIONS}))`,
      ],
      insert: `with row as (insert into store (prefix, key, value) values ('memories.' || $1, md5($2), jsonb_build_object('text', $2::text)) returning *)
        insert into store_vectors (prefix, key, embedding) select prefix, key, $3 from row`,
      mapping: {
        preset: 'langgraph-store',
        user_pattern: 'memories.{user}',
        content: `value->>'text'`,
        user_id: 'prefix',
      },
    };
    const db = await filled(laid);
    await db.sql('analyze');
    const statements = remediesOf(
      (await look(db.url, laid, { large_user_rows: 5 })).filter(({ area }) => area === 'indexes'),
    );
    expect(statements).toEqual([
      'create index concurrently on "public"."store_vectors" ("prefix", "key");',
      'create index concurrently on "public"."store_vectors" using hnsw ("embedding" "public".vector_cosine_ops);',
    ]);
    for (const sql of statements) await db.sql(sql);
    await db.sql('analyze');
    const { all: plans } = await plansOf(db.url, laid);
    expect(plans).toContain('store_vectors_prefix_key_idx');
    expect(plans).toContain('store_vectors_embedding_idx');
    const after = await look(db.url, laid, { large_user_rows: 5 });
    expect(told(after, 'warning').filter((each) => each.startsWith('indexes'))).toEqual([]);
  });

  it.each([
    [4_000, true],
    [4_001, false],
  ])('suggests an index for vectors of %i dimensions: %s', async (dimensions, suggested) => {
    const laid = { ...json('jsonb', `vector(${dimensions})`), dimensions };
    const db = await filled(laid, 8);
    await db.sql('analyze');
    const found = told(await look(db.url, laid, { large_user_rows: 1 }), 'warning').join();
    expect(found).toContain('no index leads to the rows of a user');
    expect(found.includes('no index finds the nearest vectors')).toBe(suggested);
  });
});
