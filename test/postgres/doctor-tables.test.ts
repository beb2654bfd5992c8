import { beforeEach, describe, expect, it } from 'vitest';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call, contextOf, memoryOf } from '../support/requests.ts';
import { openStoreOf, type WritableStore } from '../support/stores.ts';
import {
  factsOn,
  findingsOn,
  KEYWORD,
  problemsOn,
  remediesOf,
  type TestDatabase,
  testDatabase,
  told,
  warningsOn,
} from './databases.ts';

/** Starts a gateway's provider, adds memories, and closes it. */
async function served(url: string, { memories = 0, keyword = false, dimensions = 64 } = {}): Promise<void> {
  const context = contextOf({
    embedder: hashingEmbedder(dimensions),
    ranking: { mode: 'hybrid', keyword_weight: 0.5 },
    ...(keyword && KEYWORD),
  });
  const provider = (await openStoreOf('postgres', { url }, context)) as WritableStore;
  for (let i = 0; i < memories; i++) await provider.add({ input: memoryOf(`user-${i % 10}`, `text ${i}`) }, call);
  await provider.close();
}

async function usedDatabase(options?: Parameters<typeof served>[1]): Promise<TestDatabase> {
  const db = await testDatabase();
  await served(db.url, options);
  return db;
}

/** Grants every privilege on the gateway's tables. */
const STATEMENTS_OF_ALL = [
  'grant usage on schema omp to ROLE',
  'grant select, insert, update, delete on all tables in schema omp to ROLE',
];

describe("doctor on the gateway's tables", () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));
  const run = async (db: TestDatabase, statements: readonly string[]) => {
    for (const statement of statements) await db.sql(statement);
  };

  it('finds nothing wrong before the first start, nor after it, and changes nothing', async () => {
    const db = await testDatabase();
    const before = await db.state();
    const first = await findingsOn(db.url);
    expect(told(first, 'problem')).toEqual([]);
    expect(told(first, 'ok').join('\n')).toMatch(
      /the gateway creates the extension[\s\S]*no schema "omp" yet; the gateway creates it/,
    );
    expect(await db.state()).toEqual(before);
    await served(db.url, { memories: 3 });
    const then = await db.state();
    const second = await findingsOn(db.url);
    expect(told(second, 'problem')).toEqual([]);
    expect(told(second, 'warning').filter((line) => !line.startsWith('extension'))).toEqual([
      'size: ANALYZE has never run on the table: the planner guesses, and sizes are unknown',
    ]);
    expect(told(second, 'ok')).toEqual(
      expect.arrayContaining([
        'privileges: the role may read and write all tables of the gateway',
        'embedding: the stored vectors were made by "test-trigram-hashing" (64 dimensions)',
        'indexes: all indexes of the gateway exist and are valid',
      ]),
    );
    expect(await db.state()).toEqual(then);
  });

  it('finds out that another model of the same name and length made the vectors', async () => {
    const db = await usedDatabase({ memories: 12 });
    const embedder = hashingEmbedder();
    const embed: typeof embedder.embed = (texts, purpose, by) =>
      embedder.embed(
        texts.map((text) => [...text].reverse().join('')),
        purpose,
        by,
      );
    expect(await problemsOn(db.url, {}, { embedder: { ...embedder, embed } })).toEqual([
      expect.stringMatching(/^embedding: "test-trigram-hashing" did not make the stored vectors: 10 stored texts/),
    ]);
  });

  it('names a schema that the role may not make, and what lets it', async () => {
    const db = await testDatabase();
    await db.sql('create extension vector');
    const url = await db.role();
    const findings = await findingsOn(url);
    expect(told(findings, 'problem')).toEqual(['privileges: there is no schema "omp", and the role may not create it']);
    const [create = '', grant = ''] = remediesOf(findings).slice(-2);
    await db.sql(grant);
    expect(await problemsOn(url)).toEqual([]);
    await db.sql(grant.replace('grant', 'revoke').replace(' to ', ' from '));
    await db.sql(create);
    expect(await problemsOn(url)).toEqual([]);
    await served(url);
  });

  it('names a schema that the role may not use, or not make tables in', async () => {
    const db = await testDatabase();
    await db.sql('create extension vector');
    await db.sql('create schema omp');
    const url = await db.role();
    const unusable = await findingsOn(url);
    expect(told(unusable, 'problem')).toEqual(['privileges: the role may not use the schema "omp"']);
    await run(db, remediesOf(unusable).slice(-1));
    expect(await problemsOn(url)).toEqual([]);
    const other = await db.role('grant usage on schema omp to ROLE');
    const closed = await findingsOn(other);
    expect(told(closed, 'problem')).toEqual(['privileges: the role may not create tables in the schema "omp"']);
    await run(db, remediesOf(closed).slice(-1));
    expect(await problemsOn(other)).toEqual([]);
  });

  it('names each privilege that the role lacks on a table, and tables it does not own', async () => {
    const db = await usedDatabase();
    const url = await db.role(
      ...STATEMENTS_OF_ALL,
      'revoke delete on omp.memories from ROLE',
      'revoke insert, update on omp.audit_log from ROLE',
    );
    const findings = await findingsOn(url);
    expect(told(findings, 'problem')).toHaveLength(1);
    expect(told(findings, 'problem')[0]).toMatch(
      /^privileges: the role lacks (?=.*\bdelete on memories)(?=.*\binsert, update on audit_log)/,
    );
    expect(told(findings, 'warning').join('\n')).toContain('privileges: the role does not own the tables');
    const [grant = '', own = ''] = remediesOf(findings).filter((sql) => !sql.includes('extension'));
    await db.sql(grant);
    expect(await problemsOn(url)).toEqual([]);
    await db.sql(own);
    expect((await warningsOn(url)).join('\n')).not.toContain('does not own');
  });

  it('reports tables that it cannot read', async () => {
    const db = await usedDatabase();
    const url = await db.role('grant usage on schema omp to ROLE');
    expect(await problemsOn(url)).toEqual([expect.stringMatching(/^privileges: the role lacks select, insert/)]);
  });

  it('reports row security that hides rows', async () => {
    const db = await usedDatabase();
    await db.sql('alter table omp.memories enable row level security');
    const url = await db.role(...STATEMENTS_OF_ALL);
    const findings = await findingsOn(url);
    expect(told(findings, 'warning')).toContain('privileges: row security restricts what the role sees of memories');
    await run(
      db,
      remediesOf(findings).filter((sql) => sql.includes('bypassrls')),
    );
    expect((await warningsOn(url)).join('\n')).not.toContain('row security');
  });

  it('reports an older schema, and a newer one as a problem', async () => {
    const db = await usedDatabase();
    const [{ version } = { version: 0 }] = await db.sql<{ version: number }>(
      'select max(version) as version from omp.migrations',
    );
    await db.sql('delete from omp.migrations where version = $1', [version]);
    expect(await factsOn(db.url)).toContain(
      `privileges: the schema is at version ${version - 1}; the gateway migrates it to ${version} at its next start`,
    );
    await db.sql(`insert into omp.migrations (version, name) values (${version + 1}, 'later')`);
    expect(await problemsOn(db.url)).toEqual([
      `privileges: the schema "omp" is at version ${version + 1}, newer than this gateway knows (${version}); upgrade omp-gateway`,
    ]);
  });

  it('tells what waits for a vector and what failed, why, and how it is queued again', async () => {
    const db = await usedDatabase({ memories: 14 });
    expect(await factsOn(db.url)).toContain('ingestion: no memory waits for its vector');
    await db.sql(`insert into omp.ingestion (memory_id, status, attempts, error)
      select id, case when n > 13 then 'queued' when n > 1 then 'failed' else 'indexing' end, 5, case when n > 2 then 'too odd' else 'too long' end
      from (select id, row_number() over (order by id) as n from omp.memories) as m`);
    await db.sql('update omp.memories set embedding = null');
    const findings = await findingsOn(db.url);
    expect(told(findings, 'problem')).toEqual([]);
    const [line] = told(findings, 'warning').filter((line) => line.startsWith('ingestion'));
    expect(line).toMatch(
      /^ingestion: 12 memories have no vector, so only keywords find them: 11 because "too odd" \(mem_\w+(, mem_\w+){9} and 1 more\); 1 because "too long" \(mem_\w+\); 2 memories wait for a vector, the first for \d+ seconds$/,
    );
    await run(
      db,
      remediesOf(findings).filter((sql) => sql.includes('ingestion')),
    );
    expect(await db.sql(`select from omp.ingestion where status = 'failed'`)).toEqual([]);
    // Nobody computes vectors in keyword mode.
    const [waiting] = (await warningsOn(db.url, {}, KEYWORD)).filter((each) => each.startsWith('ingest'));
    expect(waiting).toMatch(
      /^ingestion: 14 memories wait for a vector, .*; a gateway computes them only while OMP_SEARCH/,
    );
  });

  it('[Decision 51] tells which old transaction holds the feed of changes back', async () => {
    const db = await usedDatabase();
    expect(told(await findingsOn(db.url), 'ok').join()).toContain('no open transaction holds the feed of changes back');
    // Time that passes nowhere else: this view hides the one of the system.
    await db.sql('create schema past');
    await db.sql(`create view past.pg_stat_activity as select 4711 as pid, 'shop' as datname, 'baker' as usename,
      clock_timestamp() - interval '90 minutes' as xact_start, '7'::xid as backend_xid`);
    const url = `${db.url}?options=-c%20search_path%3Dpast,pg_catalog,public`;
    const findings = await findingsOn(url);
    expect(told(findings, 'warning').join()).toMatch(
      /open for 540\d seconds holds the feed of changes back: session 4711 of role "baker" in the database "shop"/,
    );
    expect(remediesOf(findings).join()).toContain('select pg_terminate_backend(4711);');
  });

  it('names both embedders where they differ, and the ways out', async () => {
    const db = await usedDatabase({ memories: 1 });
    const [found = ''] = await problemsOn(db.url, {}, { embedder: hashingEmbedder(32) });
    expect(found).toMatch(/"test-trigram-hashing" \(64 dimensions\).*"test-trigram-hashing" \(32 dimensions\)/);
    expect(found).toMatch(/omp-gateway reembed.*OMP_EMBEDDING_MODEL/);
    const other = { ...hashingEmbedder(), model: 'another' };
    expect(await problemsOn(db.url, {}, { embedder: other })).toEqual([expect.stringContaining('"another" (64')]);
    expect((await warningsOn(db.url, {}, { embedder: other })).join('\n')).not.toContain('re-embed for');
    // Without an embedder that works there is nothing to hold it against.
    expect(await problemsOn(db.url, {}, { embedder: undefined })).toEqual([]);
  });

  it('tells a re-embedding that is not finished', async () => {
    const db = await usedDatabase({ memories: 1 });
    await db.sql(`update omp.store set next_model = 'another', next_dimensions = 32, next_column = 'embedding_2'`);
    const findings = await findingsOn(db.url);
    expect(told(findings, 'problem')).toEqual([]);
    expect(told(findings, 'warning')).toContain(
      'embedding: a re-embed for "another" (32 dimensions) is not finished; "omp-gateway reembed" continues it',
    );
    const going = await findingsOn(db.url, {}, { embedder: { ...hashingEmbedder(32), model: 'another' } });
    expect(told(going, 'problem')).toEqual([expect.stringContaining('run "omp-gateway reembed" to finish it')]);
  });

  it('tells memories without a vector, unless none are wanted', async () => {
    const db = await usedDatabase({ memories: 1, keyword: true });
    expect(await problemsOn(db.url)).toEqual([
      'embedding: some stored memories have no vector, because they were added with OMP_SEARCH_MODE=keyword; run "omp-gateway reembed", or keep that mode',
    ]);
    expect(await problemsOn(db.url, {}, KEYWORD)).toEqual([]);
  });

  it('tells indexes that were dropped or are not valid, and makes them again', async () => {
    const db = await usedDatabase({ memories: 20 });
    const all = `select c.relname as name, pg_get_indexdef(c.oid) as definition from pg_class c where relnamespace = 'omp'::regnamespace and relkind = 'i' order by 1`;
    const before = await db.sql<{ name: string }>(all);
    const named = before
      .map(({ name }) => name)
      .filter((name) => !name.endsWith('_pkey') && name !== 'api_keys_name_key');
    expect(named).toEqual(expect.arrayContaining(['memories_embedding', 'memories_user_time', 'audit_log_time']));
    for (const name of named) {
      if (name.startsWith('memories_e') || name === 'memories_user_tags')
        await db.sql(`update pg_index set indisvalid = false where indexrelid = 'omp.${name}'::regclass`);
      else await db.sql(`drop index omp.${name}`);
    }
    const findings = (await findingsOn(db.url)).filter(({ area }) => area === 'indexes');
    expect(findings.map(({ level }) => level)).toEqual(named.map(() => 'warning'));
    for (const name of named)
      expect(findings.map(({ message }) => message).join('\n')).toContain(`the index ${name} is`);
    for (const { remedies = [] } of findings) for (const { reason } of remedies) expect(reason).not.toBe('');
    await run(db, remediesOf(findings));
    expect(await db.sql(all)).toEqual(before);
    expect((await warningsOn(db.url)).join('\n')).not.toContain('indexes:');
  });

  it('estimates rows and users once there are statistics, and shows no user id', async () => {
    const db = await usedDatabase({ memories: 200 });
    const never = await findingsOn(db.url);
    expect(told(never, 'warning').join('\n')).toContain('size: ANALYZE has never run');
    await run(
      db,
      remediesOf(never).filter((sql) => sql.startsWith('analyze')),
    );
    const findings = await findingsOn(db.url);
    expect(told(findings, 'warning').join('\n')).not.toContain('ANALYZE');
    expect(told(findings, 'ok')).toContain(
      'size: about 200 rows, of about 10 users, about 20 each on average; the largest has about 20 (10 %)',
    );
    expect(JSON.stringify(findings)).not.toContain('user-1');
    await db.sql(`update omp.memories set user_id = 'user-1' where user_id in ('user-2', 'user-3')`);
    await db.sql('analyze omp.memories');
    expect(await factsOn(db.url)).toContain(
      'size: about 200 rows, of about 8 users, about 25 each on average; the largest has about 60 (30 %)',
    );
  });

  it('tells users that are searched by index, a server that is read-only, and keywords of another analyser', async () => {
    const db = await usedDatabase();
    await db.sql(`insert into omp.large_users values ('ana', true), ('ben', false)`);
    const findings = await findingsOn(db.url, { large_user_rows: 7 });
    expect(told(findings, 'ok')).toContain(
      'size: users with more than 7 memories, searched by index: 1, and 1 being indexed',
    );
    expect(JSON.stringify(findings)).not.toContain('ana');

    const url = new URL(db.url);
    url.searchParams.set('options', '-c default_transaction_read_only=on');
    expect(await problemsOn(url.href)).toEqual([expect.stringContaining('connection: the server is read-only')]);
    await db.sql('update omp.store set analyser_version = 99');
    expect(await problemsOn(db.url)).toEqual([expect.stringContaining('text analyser 99')]);
  });
});
