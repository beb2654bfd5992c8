import { describe, expect, it, onTestFinished } from 'vitest';
import type { Embedder } from '#contract';
import { ANONYMOUS, type Authenticator } from '../../src/core/grants.ts';
import { openStore } from '../postgres/store.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { RECORDED } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { IS_CITUS, SERVER_OPTIONS, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject, type Subject } from '../support/subject.ts';

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

interface Opened {
  readonly subject: Subject;
  /** Everything that is stored, one text for each row. */
  rows(): Promise<string[]>;
  /** The rows of the audit log, which names users and scopes. */
  log?(): Promise<{ user_id: string; app: string; action: string; scope: string | null }[]>;
}

async function postgres(erased_users: Erased): Promise<Opened> {
  const store = await openStore();
  onTestFinished(store.close);
  const { release, embedder } = heldEmbedder();
  const options = { ...(SERVER_URL ? SERVER_OPTIONS : {}), url: store.url, schema: store.schema, ingestion: 'async' };
  const audit = { ...RECORDED, erased_users };
  const subject = await openSubject({ provider: 'postgres', options, embedder, audit, authenticator });
  onTestFinished(async () => {
    release();
    await subject.close();
  });
  return {
    subject,
    async rows() {
      const tables = await store.sql<{ name: string }>(
        `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = $1`,
        [store.schema],
      );
      const rows: string[] = [];
      for (const { name } of tables)
        if (!name.endsWith('audit_log'))
          rows.push(...(await store.sql<{ text: string }>(`select t::text as text from ${name} t`)).map((r) => r.text));
      return rows;
    },
    log: () => store.sql(`select user_id, app, action, scope from ${store.names.auditLog} where user_id is not null`),
  };
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

const STORES: readonly (readonly [string, (erased: Erased) => Promise<Opened>])[] = [
  [`postgres${IS_CITUS ? ', distributed' : ''}`, postgres],
  ...(IS_CITUS
    ? []
    : ([
        ['memory', memory],
        ['pinecone', pinecone],
      ] as const)),
];

describe.each(STORES)('%s', (_, open) => {
  it.each(['keep', 'hash'] as const)(
    '[Decision 62] after an erase no table, record or queue has a text of the user, and all of others stays (audit: %s)',
    async (erased_users) => {
      const { subject, rows, log } = await open(erased_users);
      const { client, capabilities } = subject;
      const [user_id, other] = ['the-user', 'the-other'];
      const withKey = (user_id: string, content: string, key: string) =>
        client.tell('POST', '/memories', { user_id, content }, { 'idempotency-key': key });
      const fill = async (user_id: string) => {
        const whole = {
          tags: ['zq-tag'],
          scope: 'zq-scope',
          source: { app: 'a', ref: 'zq-ref' },
          'x-note': 'zq-extension',
        };
        const { id } = await client.add({ user_id, content: 'zq-earlier', ...whole });
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
      const others = (await client.list({ user_id: other })).items.map(({ id }) => id);
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
      expect(receipt).toMatchObject({
        user_id,
        complete: true,
        stores: [{ removed: { memories }, left: { memories: 0 } }],
      });
      const after = await rows();
      expect(after.filter((row) => !ofOther(row) && /zq-|the-user/.test(row))).toEqual([]);
      expect(after.filter(ofOther).toSorted()).toEqual(kept.toSorted());
      expect((await client.list({ user_id: other })).items.map(({ id }) => id)).toEqual(others);

      const entries = (await log?.()) ?? [];
      if (log && erased_users === 'hash') {
        expect(entries.filter((row) => row.user_id === user_id).map(({ action }) => action)).toEqual(['erase']);
        const hashed = entries.filter((row) => row.user_id.startsWith('erased:'));
        expect(hashed).toHaveLength(receipt.stores[0]?.removed.audit_entries as number);
        expect(new Set(hashed.map((row) => `${row.user_id} ${row.scope}`)).size).toBe(1);
        expect(hashed.filter((row) => row.app !== row.user_id)).toEqual([]);
      }

      const { removed, left } = receipt.stores[0] as (typeof receipt.stores)[number];
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
            { what: 'audit_entries', count: 1 },
            { what: 'audit_entries_hashed', count: removed.audit_entries },
            { what: 'backups' },
          ]);
          const { changes } = await client.changes();
          expect(changes.filter((change) => change.user_id === user_id).map(({ action }) => action)).toEqual(['erase']);
          const hidden = changes.filter((change) => change.user_id.startsWith('erased:'));
          expect(hidden.length).toBeGreaterThan(0);
          expect(hidden.filter((change) => change.caller !== change.user_id)).toEqual([]);
          const name = hidden[0]?.user_id as string;
          const ofName = await client.audit({ user_id: name, limit: 100 });
          expect(new Set(ofName.map(({ app, action }) => (action === 'audit' ? name : app)))).toEqual(new Set([name]));
        }
      }
    },
  );

  it.each(['keep', 'hash'] as const)(
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
