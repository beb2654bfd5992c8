import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Embedder } from '#contract';
import { toUnitHalf } from '#ranking';
import { MIGRATIONS } from '../../providers/postgres/startup/migrations.ts';
import { randomVector } from '../ranking/random-vectors.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import type { WritableStore } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';
import {
  call,
  memoryOf,
  openStore,
  randomName,
  refTo,
  searchFor,
  storeForEach,
  type TestDatabase,
  tablesSince,
  until,
} from './store.ts';

const urlWith = (changes: { readonly user?: string; readonly database?: string }): string => {
  const url = new URL(SERVER_URL);
  if (changes.user) url.username = changes.user;
  if (changes.database) url.pathname = `/${changes.database}`;
  return url.href;
};

const works = async (provider: WritableStore): Promise<void> => {
  const memory = await provider.add({ input: memoryOf('u', 'it works', { scope: 'a/b', tags: ['t'] }) }, call);
  expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
  expect(
    await provider.list?.({ user_id: 'u', scope: 'a/*', tags: ['t'], within: null, max_bytes: 1e9, limit: 1 }, call),
  ).toEqual([memory]);
  const [hit] =
    (await provider.search?.(
      { user_id: 'u', text: 'it works', scope: 'a', tags: [], within: null, max_bytes: 1e9, limit: 1 },
      call,
    )) ?? [];
  expect(hit).toEqual({ memory, score: 1 });
};

it('a schema with any characters in its name works', async () => {
  const store = await openStore(`${randomName()}a"b c's UPPER.select ünïcode`);
  try {
    await works(await store.open());
    await works(await store.open({ options: { large_user_rows: 1 } }));
    const schemas = await store.sql('select nspname from pg_namespace where nspname = $1', [store.schema]);
    expect(schemas).toHaveLength(1);
  } finally {
    await store.close();
  }
});

describe('a schema of version 1', () => {
  it('is brought up to date with everything in it, by several gateways at once', async () => {
    const store = await openStore();
    try {
      const first = await store.open();
      const memory = await first.add({ input: memoryOf('u', 'made by the first version', { scope: 'a/b' }) }, call);
      const extensions = { 'x-omp-origin': 'of the client', 'x-OMP-a': [1], 'x-b': null, 'x-ompa': 2 };
      const keyed = await first.add({ input: memoryOf('u', 'with keys', { extensions }) }, call);
      await first.close();
      const { migrations } = store.names;
      await store.sql(
        `drop table ${tablesSince(1, store.names).join(', ')}; delete from ${migrations} where version > 1;
         alter table ${store.names.store} drop embedding_column, drop columns_made, drop next_model, drop next_dimensions, drop next_column, drop bucket_secret, drop log_origin, drop log_base;
         alter table ${store.names.memories} drop bucket, drop version; alter table ${store.names.largeUsers} drop bucket;
         drop index ${store.names.schema}.memories_user_tags, ${store.names.schema}.memories_valid_to, ${store.names.schema}.memories_conversation; create index memories_tags on ${store.names.memories} using gin (tags)`,
      );
      const upgraded = await Promise.all([1, 2, 3].map(() => store.open()));
      const versions = await store.sql(`select version, name from ${migrations} order by version`);
      expect(versions).toEqual(MIGRATIONS.map(({ name }, i) => ({ version: i + 1, name })));
      for (const provider of upgraded) {
        expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
        // Decision 54: the gateway's own keys are reserved now.
        expect((await provider.get(refTo(keyed.id), call))?.extensions).toEqual({
          ...{ 'x-client-omp-origin': 'of the client', 'x-client-OMP-a': [1], 'x-b': null, 'x-ompa': 2 },
        });
        expect(await provider.keys?.hasAny(call)).toBe(false);
        await works(provider);
      }
      const entries = await upgraded[0]?.audit?.read({ user_id: 'u', within: null, limit: 10 }, call);
      expect(entries?.map(({ action }) => action)).toEqual(['add', 'add', 'add']);
    } finally {
      await store.close();
    }
  });
});

if (SERVER_URL === '') {
  it('on a PostgreSQL server', ({ skip }) => skip(NO_SERVER));
} else {
  describe('on a server', () => {
    const store = storeForEach();
    /** A role that may log in, dropped after the test. */
    const createRole = async (): Promise<string> => {
      const role = randomName();
      await store.sql(`create role ${role} login`);
      const admin = new pg.Client({ connectionString: SERVER_URL });
      onTestFinished(async () => {
        await admin.connect();
        await admin.query(`drop owned by ${role} cascade; drop role ${role}`);
        await admin.end();
      });
      return role;
    };

    it('many gateways start at once on a schema that does not exist', async () => {
      const providers = await Promise.all(Array.from({ length: 8 }, () => store.open()));
      expect(await store.sql(`select version from ${store.names.migrations}`)).toEqual(
        MIGRATIONS.map((_, index) => ({ version: index + 1 })),
      );
      for (const provider of providers) await works(provider);
    });

    it('starts without the right to create schemas once the schema is there, and names the grant until then', async () => {
      const role = await createRole();
      await expect(store.open({ url: urlWith({ user: role }) })).rejects.toThrow(
        /lacks a privilege that the start needs\n {2}- there is no schema .*; run: create schema .* authorization .*; or grant create on database/,
      );
      await store.sql(`create schema ${store.names.schema} authorization ${role}`);
      const provider = await store.open({ url: urlWith({ user: role }) });
      await works(provider);
      await provider.close();
    });

    it('starts without the right to create anything, once another role has made the tables', async () => {
      await store.open();
      const role = await createRole();
      await store.sql(
        `grant usage on schema ${store.names.schema} to ${role};
           grant select, insert, update, delete on all tables in schema ${store.names.schema} to ${role}`,
      );
      const provider = await store.open({ url: urlWith({ user: role }) });
      await works(provider);
      await provider.close();
    });

    it('says that the database is read-only, and which setting helps', async () => {
      const role = await createRole();
      await store.sql(`alter role ${role} set default_transaction_read_only = on`);
      await expect(store.open({ url: urlWith({ user: role }) })).rejects.toThrow(
        'the database is read-only: it is a standby, or default_transaction_read_only is on; set DATABASE_URL to the primary',
      );
    });

    it('rejects a role that may not read, leaving no connection behind', async () => {
      await store.open();
      const role = await createRole();
      await store.sql(
        `grant usage on schema ${store.names.schema} to ${role};
           grant select, insert, update, delete on all tables in schema ${store.names.schema} to ${role};
           revoke select on ${store.names.largeUsers} from ${role}`,
      );
      await expect(store.open({ url: urlWith({ user: role }) })).rejects.toThrow(
        'lacks a privilege in the database; "omp-gateway doctor" prints the grant that helps',
      );
      // The server notices a closed connection a moment later.
      await until(
        async () => (await store.sql('select from pg_stat_activity where usename = $1', [role])).length === 0,
      );
    });

    describe('in a database of its own', () => {
      let database: string;
      beforeEach(async () => {
        database = randomName();
        await store.sql(`create database ${database} template template0 encoding 'UTF8'`);
      });
      afterEach(() => store.sql(`drop database ${database} with (force)`));

      it('many gateways start at once before there is an extension', async () => {
        const url = urlWith({ database });
        const providers = await Promise.all(
          Array.from({ length: 6 }, (_, i) => store.open({ url, schema: `omp_${i % 3}` })),
        );
        for (const provider of providers) await works(provider);
        for (const provider of providers) await provider.close();
      });

      it('finds the extension in a schema that is not on the search path', async () => {
        const client = new pg.Client({ connectionString: urlWith({ database }) });
        await client.connect();
        await client.query('create schema "ex""tensions"; create extension vector schema "ex""tensions"');
        const provider = await store.open({ url: urlWith({ database }), options: { large_user_rows: 1 } });
        await works(provider);
        await works(provider);
        await until(
          async () => (await client.query(`select from ${store.names.largeUsers} where ready`)).rowCount === 1,
        );
        await works(provider);
        await provider.close();
        await client.end();
      });

      it('says what to do when the extension is missing and may not be created', async () => {
        const role = await createRole();
        await expect(store.open({ url: urlWith({ database, user: role }) })).rejects.toThrow(
          /create extension vector.*superuser/,
        );
      });
    });
  });
}

it.each([
  ['a table', (names: TestDatabase['names']) => `drop table ${names.ingestion}`, /ingestion/],
  ['the table of the memories', (names: TestDatabase['names']) => `drop table ${names.memories} cascade`, /memories/],
  [
    'a primary key',
    (names: TestDatabase['names']) => `alter table ${names.apiKeys} drop constraint api_keys_pkey`,
    /api_keys/,
  ],
  ['its version', (names: TestDatabase['names']) => `delete from ${names.migrations}`, /migrations/],
  ['the table of its version', (names: TestDatabase['names']) => `drop table ${names.migrations}`, /migrations/],
])('a schema that was restored only in part without %s is refused, with what to do', async (_, damage, what) => {
  const store = await openStore();
  try {
    await (await store.open()).close();
    await store.sql(damage(store.names));
    const failure = await store.open().then(String, (error: Error) => error.message);
    expect(failure).toMatch(what);
    expect(failure).toMatch(/was restored only in part.*"create extension vector".*restore the backup again/);
  } finally {
    await store.close();
  }
});

/** Any dimensions; equal texts are equal, others are not alike. */
const embedderOf = (model: string, dimensions: number): Embedder => ({
  model,
  dimensions,
  embed: async (texts) =>
    texts.map((text) =>
      toUnitHalf(
        randomVector(
          dimensions,
          [...text].reduce((sum, c) => sum * 31 + c.charCodeAt(0), 7),
        ),
      ),
    ),
  close: async () => {},
});

const store = storeForEach();

const firstOpen = async (embedder?: Embedder) => {
  const provider = await store.open(embedder ? { embedder } : { mode: 'keyword' });
  const memory = await provider.add({ input: memoryOf('u', 'kept from before') }, call);
  return { provider, memory };
};
const storedAs = () => store.sql(`select embedding_model, dimensions from ${store.names.store}`);

describe('the embedder of stored vectors', () => {
  it('is the first one that is configured, and may be opened again', async () => {
    const { memory } = await firstOpen(embedderOf('one', 8));
    expect(await storedAs()).toEqual([{ embedding_model: 'one', dimensions: 8 }]);
    const again = await store.open({ embedder: embedderOf('one', 8) });
    expect(await again.get(refTo(memory.id), call)).toEqual({ ...memory, embedding_model: 'one' });
  });

  it.each([
    ['another model', embedderOf('two', 8), /"one" \(8 dimensions\).*"two" \(8 dimensions\)/],
    ['other dimensions', embedderOf('one', 16), /"one" \(8 dimensions\).*"one" \(16 dimensions\)/],
  ])('refuses %s, names both and the settings', async (_, other, both) => {
    const { memory } = await firstOpen(embedderOf('one', 8));
    const refusal = expect(store.open({ embedder: other })).rejects;
    await refusal.toThrow(both);
    await expect(store.open({ embedder: other })).rejects.toThrow(
      /"omp-gateway reembed".*OMP_EMBEDDING_MODEL.*OMP_EMBEDDING_DIMENSIONS/,
    );
    expect(await storedAs()).toEqual([{ embedding_model: 'one', dimensions: 8 }]);
    const again = await store.open({ embedder: embedderOf('one', 8) });
    expect(await again.get(refTo(memory.id), call)).toEqual(memory);
  });

  it('cannot be added to memories without vectors, and the attempt leaves everything as it was', async () => {
    const { memory } = await firstOpen();
    await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(
      /OMP_SEARCH_MODE=keyword.*"omp-gateway reembed"/,
    );
    expect(await storedAs()).toEqual([{ embedding_model: null, dimensions: null }]);
    const again = await store.open({ mode: 'keyword' });
    expect(await again.get(refTo(memory.id), call)).toEqual(memory);
    // Without any memory nothing stands in the way.
    await again.delete?.(refTo(memory.id), call);
    await store.open({ embedder: embedderOf('one', 8) });
    expect(await storedAs()).toEqual([{ embedding_model: 'one', dimensions: 8 }]);
  });

  it('may be left out for a while, as long as nothing is added meanwhile', async () => {
    await firstOpen(embedderOf('one', 8));
    await store.open({ mode: 'keyword' });
    const back = await store.open({ embedder: embedderOf('one', 8) });
    expect((await back.search?.(searchFor('u', 'kept', { limit: 1 }), call))?.[0]?.score).toBeGreaterThan(0.4);
    const keyword = await store.open({ mode: 'keyword' });
    await keyword.add({ input: memoryOf('u', 'added without a vector') }, call);
    await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(
      /have no vector.*"omp-gateway reembed"/,
    );
  });
});

it('the text analyser of stored keywords must be the one of this gateway', async () => {
  await firstOpen(embedderOf('one', 8));
  await store.sql(`update ${store.names.store} set analyser_version = 999`);
  await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(/analyser 999/);
});

it.each([
  { dimensions: 2_000, storage: 'p', indexed: true },
  { dimensions: 2_001, storage: 'e', indexed: true },
  { dimensions: 3_000, storage: 'e', indexed: true },
  { dimensions: 4_500, storage: 'e', indexed: false },
])(
  'long vectors of $dimensions dimensions are kept and searched, index: $indexed',
  async ({ dimensions, storage, indexed }) => {
    const log = recordingLog();
    const embedder = embedderOf('long', dimensions);
    const provider = await store.open({ embedder, log, mode: 'vector', options: { large_user_rows: 4 } });
    const texts = ['one', 'two', 'three', 'four', 'five', 'six'];
    for (const text of texts) await provider.add({ input: memoryOf('u', text, { scope: 's'.repeat(512) }) }, call);

    const indexes = await store.sql('select indexname from pg_indexes where schemaname = $1 and indexname = $2', [
      store.schema,
      'memories_embedding',
    ]);
    expect(indexes).toHaveLength(indexed ? 1 : 0);
    expect(log.lines.some(({ message }) => /too long for an index/.test(message))).toBe(!indexed);
    const column = `select attstorage from pg_attribute where attrelid = '${store.names.memories}'::regclass and attname = 'embedding'`;
    expect(await store.sql(column)).toEqual([{ attstorage: storage }]);

    const search = async (text: string) =>
      provider.search?.({ user_id: 'u', text, tags: [], within: null, max_bytes: 1e9, limit: 10 }, call);
    const before = await search('four');
    expect(before?.[0]).toMatchObject({ memory: { content: 'four' }, score: 1 });
    expect(before).toHaveLength(texts.length);
    const ready = `select from ${store.names.largeUsers} where ready`;
    await until(async () => (await store.sql(ready)).length === 1);
    expect(await search('four')).toEqual(before);
    await provider.update?.({ ref: refTo(before?.[0]?.memory.id ?? ''), patch: { content: 'seven' } }, call);
    expect((await search('seven'))?.[0]).toMatchObject({ memory: { content: 'seven' }, score: 1 });
  },
);

it('a schema made by a newer gateway is rejected and stays unchanged', async () => {
  await firstOpen(embedderOf('one', 8));
  await store.sql(`insert into ${store.names.migrations} (version, name) values (99, 'from the future')`);
  await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(/version 99, newer.*upgrade/);
  expect(await store.sql(`select max(version) as version from ${store.names.migrations}`)).toEqual([{ version: 99 }]);
});

it('the log states the version of an old pgvector, and the one that is needed', async () => {
  const store = await openStore();
  try {
    const log = recordingLog();
    await store.open({ log });
    const [{ version } = { version: '' }] = await store.sql(
      "select extversion as version from pg_extension where extname = 'vector'",
    );
    const old = /^0\.[0-7]\.|^0\.8\.[0-3]$/.test(version);
    const said = log.lines.flatMap(({ message }) => (message.includes('CVE') ? [message] : []));
    expect(said).toEqual(old ? [expect.stringContaining(`pgvector ${version} is older than 0.8.4, which fixes`)] : []);
  } finally {
    await store.close();
  }
});
