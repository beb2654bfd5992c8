import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Embedder } from '#contract';
import { runningEngine } from '../../providers/postgres/embedded/engine.ts';
import { ANONYMOUS, type Authenticator } from '../../src/core/grants.ts';
import { idPrefix } from '../../src/stores/at-mount.ts';
import { countIn, folderFiles, nodesOf, relationFiles, type Sql, type StoredFile } from '../postgres/files.ts';
import { openStore } from '../postgres/store.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { RECORDED } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { type Mount, openMounted } from '../support/mounted.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { IS_CITUS, SERVER_OPTIONS, SERVER_URL } from '../support/postgres-server.ts';
import { makeDataDir, openSubject, type Subject, type SubjectOptions } from '../support/subject.ts';

/** An embedder that keeps contents in the ingestion queue until it is released. */
function heldEmbedder() {
  const inner = hashingEmbedder();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const embed: Embedder['embed'] = async (texts, purpose, call) => {
    if (purpose === 'document') await released;
    return inner.embed(texts, purpose, call);
  };
  return { release, embedder: { ...inner, embed } };
}

type Erased = 'keep' | 'hash';

/** The user has a token, whose subject is the id of the user. */
const authenticator: Authenticator = {
  authenticate: async () => ({ ...ANONYMOUS, id: 'token:x', app: 'the-user' }),
};
/** The store that is mounted where there are two. */
const [MOUNTED, MOUNT] = ['crm', 'zq-mount'];

interface Opened {
  readonly subject: Subject;
  /** Everything that is stored, one text for each row. */
  rows(): Promise<string[]>;
  /** The rows of the audit log, which names users and scopes. */
  log?(): Promise<{ user_id: string; app: string; action: string; scope: string | null }[]>;
}

/** A Postgres whose files are on this machine. */
interface Stored extends Opened {
  readonly sql: Sql;
  readonly schema: string;
  /** Lets the ingestion queue have its vectors. */
  release(): void;
  /** How its files are read; undefined: they are on another machine. */
  files(): Promise<(() => Promise<StoredFile[]>) | undefined>;
}

/** Closes a gateway whose embedder is held after the test. */
function closeAfterTest({ close }: Subject, release: () => void): void {
  onTestFinished(async () => {
    release();
    await close();
  });
}

/** The rows of all tables of a schema but the audit log. */
async function rowsOf(sql: Sql, schema: string): Promise<string[]> {
  const tables = await sql(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname = $1 and tablename not like '%audit_log'`,
    [schema],
  );
  const rows: string[] = [];
  for (const { name } of tables)
    for (const { text } of await sql(`select t::text as text from ${name} t`)) rows.push(text as string);
  return rows;
}

const logOf = (sql: Sql, schema: string) =>
  sql(`select user_id, app, action, scope from ${schema}.audit_log where user_id is not null`) as ReturnType<
    NonNullable<Opened['log']>
  >;

/** A schema of its own, and how a gateway is opened on it. */
async function openSchema() {
  const { url, schema, sql, close } = await openStore();
  onTestFinished(close);
  const options = { ...(SERVER_URL ? SERVER_OPTIONS : {}), url, schema, ingestion: 'async' };
  const open = (more: Partial<SubjectOptions>) => openSubject({ provider: 'postgres', options, ...more });
  const files = async () => {
    const nodes = await nodesOf(sql, url);
    return nodes && (() => relationFiles(nodes, schema));
  };
  return { open, schema, sql, files, rows: () => rowsOf(sql, schema), log: () => logOf(sql, schema) };
}

async function postgres(erased_users: Erased): Promise<Stored> {
  const { open, ...read } = await openSchema();
  const { release, embedder } = heldEmbedder();
  const subject = await open({ embedder, authenticator, audit: { ...RECORDED, erased_users } });
  closeAfterTest(subject, release);
  return { subject, release, ...read };
}

/** The tables of the embedded engine, and what the gateway itself writes beside the files of the engine. */
async function embedded(erased_users: Erased): Promise<Stored> {
  const data_dir = await makeDataDir();
  onTestFinished(() => rm(data_dir, { recursive: true }));
  const { release, embedder } = heldEmbedder();
  const audit = { ...RECORDED, erased_users };
  const options = { ingestion: 'async' };
  const subject = await openSubject({ provider: 'postgres', options, data_dir, embedder, audit, authenticator });
  closeAfterTest(subject, release);
  const engine = new pg.Client(runningEngine(data_dir));
  await engine.connect();
  onTestFinished(() => engine.end());
  const sql: Sql = async (text, values) => (await engine.query(text, values)).rows;
  const files = () =>
    readdirSync(data_dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.startsWith(join(data_dir, 'postgres')))
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'));
  return {
    ...{ subject, release, sql, schema: 'omp' },
    files: async () => () => folderFiles({ sql, folder: data_dir }, 'postgres'),
    rows: async () => [...(await rowsOf(sql, 'omp')), ...files()],
    log: () => logOf(sql, 'omp'),
  };
}

/** Two stores: one holds what is in the scope of its mount, the other the rest. */
async function mounted(erased_users: Erased): Promise<Opened> {
  const [root, crm] = [await openSchema(), await openSchema()];
  const { release, embedder } = heldEmbedder();
  const mount: Mount = { name: MOUNTED, mount: MOUNT, open: crm.open };
  const subject = await openMounted(
    (own) => root.open({ ...own, authenticator, audit: { ...RECORDED, erased_users } }),
    [mount],
    {
      embedder,
    },
  );
  closeAfterTest(subject, release);
  return { subject, rows: async () => [...(await root.rows()), ...(await crm.rows())], log: root.log };
}

async function memory(erased_users: Erased): Promise<Opened> {
  const audit = { ...RECORDED, erased_users };
  const subject = await openSubject({ provider: 'memory', options: {}, audit, authenticator });
  onTestFinished(subject.close);
  return { subject, rows: async () => exported(subject) };
}

async function pinecone(): Promise<Opened> {
  const subject = await openPineconeSubject({}, { layout: 'sharded' });
  onTestFinished(subject.close);
  return {
    subject,
    async rows() {
      const rows: string[] = [];
      for (const namespace of await subject.pinecone.namespaces())
        for (const [id, record] of Object.entries(await subject.pinecone.records(namespace)))
          rows.push(`${id} ${JSON.stringify(record)}`);
      return rows;
    },
  };
}

/** All memories with their versions, as an export has them. */
async function exported({ client }: Subject): Promise<string[]> {
  const { body } = await client.ask('/export', { limit: 500, versions: 'true' });
  return (body as { memories: object[] }).memories.map((item) => JSON.stringify(item));
}

const BOTH = ['keep', 'hash'] as const;
const STORES: readonly (readonly [string, (erased: Erased) => Promise<Opened>, readonly Erased[]])[] = [
  [`postgres${IS_CITUS ? ', distributed' : ''}`, postgres, BOTH],
  ...(IS_CITUS
    ? []
    : ([
        ['postgres, embedded', embedded, ['hash']],
        ['postgres, with another one mounted', mounted, ['hash']],
        ['memory', memory, BOTH],
        ['pinecone', pinecone, ['keep']],
      ] as const)),
];

describe.each(STORES)('%s', (_, open, settings) => {
  it.each(settings)(
    '[Decision 62] after an erase no table, record or queue has a text of the user, and all of others stays (audit: %s)',
    async (erased_users) => {
      const { subject, rows, log } = await open(erased_users);
      const { client, capabilities } = subject;
      const [user_id, other] = ['the-user', 'the-other'];
      // Where users can have limits, so that there are counts of them.
      const limited = subject.provider.userUsage ? subject.limited({ memories: 100 }) : client;
      const withKey = (user_id: string, content: string, key: string) =>
        client.tell('POST', '/memories', { user_id, content }, { 'idempotency-key': key });
      const fill = async (user_id: string) => {
        const whole = {
          tags: ['zq-tag'],
          scope: `${MOUNT}/zq-scope`,
          source: { app: 'a', ref: 'zq-ref' },
          'x-note': 'zq-extension',
        };
        const { id } = await limited.add({ user_id, content: 'zq-earlier', ...whole });
        await client.update(id, { content: 'zq-content' });
        if (capabilities.features.idempotency) {
          const keyed = await withKey(user_id, 'zq-keyed', `zq-key ${user_id}`);
          await client.tell('DELETE', client.byId((keyed.body as { id: string }).id));
          await client.batch([{ user_id, content: 'zq-batch' }], `zq-batch-key ${user_id}`);
        }
        await client.ask('/memories/search', { user_id, q: 'zq-query' });
      };
      await fill(user_id);
      await fill(other);
      const ofOther = (row: string) => row.includes(other) || others.some((id) => row.includes(id));
      const listed = await client.list({ user_id: other });
      // As the mounted store has them.
      const others = listed.items.map(({ id }) => id.replace(idPrefix(MOUNTED), ''));
      const before = await rows();
      const kept = before.filter(ofOther);
      const found = new Set(before.filter((row) => !ofOther(row)).flatMap((row) => row.match(/zq-[a-z-]+/g) ?? []));
      expect([...found]).toEqual(
        expect.arrayContaining(['zq-content', 'zq-tag', 'zq-scope', 'zq-ref', 'zq-extension']),
      );
      const { versions } = capabilities.features;
      expect(found.has('zq-earlier')).toBe(versions === true);

      const receipt = await client.receipt(user_id);
      const memories = capabilities.features.idempotency ? 2 : 1;
      expect(receipt).toMatchObject({ user_id, complete: true });
      const [removed, left] = (['removed', 'left'] as const).map((of) => {
        const sums: Record<string, number> = {};
        for (const store of receipt.stores)
          for (const [kind, count] of Object.entries(store[of])) sums[kind] = (sums[kind] ?? 0) + count;
        return sums;
      }) as [Record<string, number>, Record<string, number>];
      expect([removed, left]).toMatchObject([{ memories }, { memories: 0 }]);
      const after = await rows();
      expect(after.filter((row) => !ofOther(row) && /zq-|the-user/.test(row))).toEqual([]);
      expect(after.filter(ofOther).toSorted()).toEqual(kept.toSorted());
      // What is queued may be taken meanwhile.
      const still = listed.items.map((memory) => ({
        ...memory,
        status: expect.stringMatching(/queued|indexing|done/),
      }));
      expect((await client.list({ user_id: other })).items).toEqual(still);

      // One entry of each store.
      const erases = receipt.stores.map(() => 'erase');
      const entries = (await log?.()) ?? [];
      if (log && erased_users === 'hash') {
        expect(entries.filter((row) => row.user_id === user_id).map(({ action }) => action)).toEqual(erases);
        const hashed = entries.filter((row) => row.user_id.startsWith('erased:'));
        expect(hashed).toHaveLength(removed.audit_entries as number);
        expect(new Set(hashed.map((row) => `${row.user_id} ${row.scope}`)).size).toBe(1);
        expect(hashed.filter(({ app }) => app === user_id)).toEqual([]);
        expect(hashed.some((row) => row.app === row.user_id)).toBe(true);
      }

      if (removed.usage_counts !== undefined) expect([removed.usage_counts, left.usage_counts]).toEqual([1, 0]);
      if (removed.idempotency_keys !== undefined) {
        expect(removed).toMatchObject({ vectors: expect.any(Number), versions: 1, idempotency_keys: 2 });
        // A retry of what was erased does not bring it back, also if the memory was deleted before.
        const retried = await withKey(user_id, 'zq-keyed', `zq-key ${user_id}`);
        expect(expectError(retried, 'invalid_request').message).toMatch(/was erased/);
        const batch = { memories: [{ user_id, content: 'zq-batch' }] };
        const again = await client.tell('POST', '/memories/batch', batch, {
          'idempotency-key': `zq-batch-key ${user_id}`,
        });
        expectError(again, 'invalid_request');
        expect((await withKey(other, 'zq-keyed', `zq-key ${other}`)).status).toBe(201);
      }
      if (left.audit_entries !== undefined) {
        const audit = await client.audit({ user_id, limit: 100 });
        const actions = audit
          .map(({ action }) => action)
          .filter((action) => action !== 'add' || erased_users === 'keep');
        expect(new Set(actions).has('update')).toBe(erased_users === 'keep');
        if (erased_users === 'hash') {
          expect(removed.audit_entries).toBeGreaterThan(5);
          expect(receipt.kept).toMatchObject([
            { what: 'audit_entries', count: erases.length },
            { what: 'audit_entries_hashed', count: removed.audit_entries },
            { what: 'backups' },
          ]);
          const { changes } = await client.changes();
          expect(changes.filter((change) => change.user_id === user_id).map(({ action }) => action)).toEqual(erases);
          const hidden = changes.filter((change) => change.user_id.startsWith('erased:'));
          expect(hidden.length).toBeGreaterThan(0);
          expect(hidden.filter(({ caller }) => caller === user_id)).toEqual([]);
          expect(hidden.some((change) => change.caller === change.user_id)).toBe(true);
          const name = hidden[0]?.user_id as string;
          const ofName = await client.audit({ user_id: name, limit: 100 });
          expect(ofName.filter(({ app, action }) => action !== 'audit' && app === user_id)).toEqual([]);
        }
      }
    },
  );

  it.each(settings)(
    '[Decision 62] [Decision 51] who follows a scope that a memory left before the erase learns that it is gone (audit: %s)',
    async (erased_users) => {
      const { client, capabilities } = (await open(erased_users)).subject;
      if (!capabilities.features.changes) return;
      const user_id = 'the-user';
      const [deleted, moved] = [
        await client.add({ user_id, content: 'a', scope: 'deleted' }),
        await client.add({ user_id, content: 'b', scope: 'moved' }),
      ];
      const seen = await eventually(async () => {
        const page = await client.changes();
        expect(page.changes).toHaveLength(2);
        return page.next_cursor;
      });
      await client.tell('DELETE', client.byId(deleted.id));
      await client.update(moved.id, { scope: 'elsewhere' });
      await client.receipt(user_id);
      for (const scope of ['deleted', 'moved'])
        await eventually(async () => {
          const { changes } = await client.changes({ user_id, scope, after: seen });
          expect(changes.map(({ action }) => action)).toEqual([
            ...(erased_users === 'keep' ? [expect.stringMatching(/delete|update/)] : ['erase']),
          ]);
        });
      // Once: repeating the erase tells nobody anything new.
      await client.receipt(user_id);
      const { changes } = await client.changes({ user_id, scope: 'deleted', after: seen });
      expect(changes).toHaveLength(1);
    },
  );
});

/** What docs/operations.md has an operator run after an erase. */
const CLEANING =
  /### Erased users[\s\S]*?```sql\n([^`]*)```/.exec(readFileSync('docs/operations.md', 'utf8'))?.[1] ?? '';
/** Of all tables: other tests plan on the server meanwhile. */
const OF_DATABASE = /pg_catalog\.pg_statistic$/;

/** Where files have what is sought, before an erase. */
const PLACES = {
  content: 'memories',
  earlier: 'memory_versions',
  batch: 'memories',
  tag: 'memories memories_user_tags',
  scope: 'memories memories_user_scope audit_log',
  ref: 'memories',
  extension: 'memories',
  key: 'once_keys once_keys_pkey',
  user_id: 'memories memories_user_time user_usage user_usage_pkey audit_log_user_time',
  id: 'memories memories_pkey ingestion',
  keyword: 'memories memories_keywords',
  vector: 'memories',
  normal: 'memories_embedding',
};
/** What the audit log keeps, and with it its indexes and statistics. */
const KEPT = ['user_id', 'id', 'scope'];

interface Found {
  /** What was sought. */
  readonly what: string;
  /** The name of the file. */
  readonly where: string;
  readonly times: number;
}

/** A vector of the store, or what an index makes of it, as it is in files. */
const halves = (hex: string) => Buffer.from(hex, 'hex').subarray(4).swap16();

const WITH_FILES: readonly (readonly [string, (erased: Erased) => Promise<Stored>, readonly Erased[]])[] = [
  [`postgres${IS_CITUS ? ', distributed' : ''}`, postgres, BOTH],
  ...(IS_CITUS ? [] : ([['postgres, embedded', embedded, ['hash']]] as const)),
];

describe.each(WITH_FILES)('the files of %s', (name, open, settings) => {
  it.for(settings)(
    '[Decision 62] after an erase and what operators are told to run, no table or index has anything of the user (audit: %s)',
    async (erased_users, { skip }) => {
      const { subject, sql, schema, release, ...stored } = await open(erased_users);
      const files = await stored.files();
      if (!files) return skip('the files of the server are on another machine');
      const { client } = subject;
      // So that there are counts.
      const limited = subject.limited({ memories: 100 });
      const fill = async (whose: string) => {
        const user_id = `zq-user-${whose}`;
        const { id } = await limited.add({
          ...{ user_id, content: `zq-earlier-${whose}`, tags: [`zq-tag-${whose}`], scope: `zq-scope-${whose}` },
          ...{ source: { app: 'a', ref: `zq-ref-${whose}` }, 'x-note': `zq-extension-${whose}` },
        });
        await client.update(id, { content: `zq-content-${whose}` });
        await client.batch([{ user_id, content: `zq-batch-${whose}` }], `zq-key-${whose}`);
        return { user_id, id };
      };
      const { user_id, id } = await fill('mine');
      await fill('theirs');
      release();
      await eventually(async () =>
        expect(await sql(`select id from ${schema}.memories where embedding is null`)).toEqual([]),
      );
      // As of users with many memories, without the note of their ids.
      await sql(`update ${schema}.memories set large = true`);
      await sql(`analyze ${schema}.memories`);
      const [row] = await sql(
        `select keywords[1]::text as keyword, encode(halfvec_send(embedding), 'hex') as vector,
           encode(halfvec_send(l2_normalize(embedding)), 'hex') as normal from ${schema}.memories where id = $1`,
        [id],
      );
      const keyword = Buffer.alloc(8);
      keyword.writeBigInt64LE(BigInt(row?.keyword as string));
      const texts = ['content', 'earlier', 'batch', 'tag', 'scope', 'ref', 'extension', 'key'];
      const sought: Record<string, Buffer> = {
        ...Object.fromEntries(texts.map((text) => [text, Buffer.from(`zq-${text}-mine`)])),
        ...{ user_id: Buffer.from(user_id), id: Buffer.from(id), keyword },
        ...{ vector: halves(row?.vector as string), normal: halves(row?.normal as string) },
      };
      const found = async (): Promise<Found[]> => {
        const read = await files();
        return Object.entries(sought).flatMap(([what, text]) =>
          read
            .map(({ name, bytes }) => ({ what, where: name, times: countIn(bytes, text) }))
            .filter(({ times }) => times > 0),
        );
      };
      const before = await found();
      for (const [what, where] of Object.entries(PLACES))
        for (const place of where.split(' '))
          expect(before).toContainEqual(expect.objectContaining({ what, where: place }));

      expect(await client.receipt(user_id)).toMatchObject({ complete: true });
      // What operators see too: a row stays while a transaction that began before the erase is open in the database.
      await eventually(async () => {
        for (const statement of CLEANING.replaceAll('omp', schema).split(';\n'))
          if (statement !== '' && (name.endsWith('embedded') || !OF_DATABASE.test(statement))) await sql(statement);
        const entries = await sql(`select t::text as text from ${schema}.audit_log t`);
        const rows = Buffer.from(entries.map(({ text }) => text).join());
        const isKept = ({ what, where, times }: Found) =>
          KEPT.includes(what) &&
          /^(audit_log|pg_statistic$)/.test(where) &&
          times <= countIn(rows, sought[what] as Buffer);
        expect((await found()).filter((place) => !isKept(place))).toEqual([]);
      });
    },
  );
});
