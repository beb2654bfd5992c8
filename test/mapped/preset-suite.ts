import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Finding } from '#contract';
import type { PresetName } from '../../providers/postgres/mapped/presets.ts';
import { PRESETS } from '../../providers/postgres/mapped/presets.ts';
import { runDoctor } from '../../src/cli/doctor.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, serve } from '../../src/serve.ts';
import { type Client, clientOf } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { recordingLog } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { type OwnersDatabase, openOwnersDatabase } from './database.ts';
import { documentedEnvironment, documentedSql } from './documented.ts';
import { openAiServer, vectorOf } from './openai.ts';

/** What is written by the owner's own statements, past the gateway. */
export interface OwnersRow {
  readonly user: string;
  readonly text: string;
  readonly vector: Float32Array;
  /** Counts up. */
  readonly number: number;
}

/** A library's table: its page in `docs/integrations`, and how the library makes and fills it. */
export interface OwnersTable {
  readonly page: string;
  /** Where the page has several configurations: the heading above this one. */
  readonly heading?: string;
  /** Whose memories are written, where ids of users have a form there; else `ana` and `ben`. */
  readonly users?: readonly [string, string];
  /** All rows belong to the first of `users`. */
  readonly ownerless?: true;
  /** Exactly what the owner runs; `//` tells where that was read. The role that pages call `gateway` is the test's own. */
  readonly ddl: readonly string[];
  readonly dimensions: number;
  /** Inserts as the owner does; returns the id that the gateway is to show. */
  fill(db: OwnersDatabase, row: OwnersRow): Promise<string>;
  /** Rows that must never be seen by anybody: of other collections, without an owner, without a text. */
  hide?(db: OwnersDatabase, row: OwnersRow): Promise<void>;
  /** What every record of `fill` shows besides id, content and user. */
  readonly shows: Partial<WireMemory>;
  readonly temporal: boolean;
  readonly scopes: 'native' | 'tags' | 'none';
  /** Whether `OMP_MAPPING_WRITABLE=true` is admitted. */
  readonly writable: boolean;
  /** What else the page says has to be set for that. */
  readonly writing?: Readonly<Record<string, string>>;
  /** What a memory can carry there besides text and user. */
  readonly carries?: Partial<WireMemory>;
  /** The owner's query that reads a row that the gateway wrote: what it makes of text and user. */
  read?(db: OwnersDatabase, id: string): Promise<{ text: string; user: string }>;
}

const TEXTS = ['the ferry leaves at nine', 'allergic to peanuts', 'prefers dark mode', 'lives in Lisbon'] as const;

export interface RunningExisting {
  readonly client: Client;
  readonly gateway: Gateway;
  close(): Promise<void>;
}

/** A gateway on what the page says, with the database and the embedding service of the test in the place of those. */
export async function serveDocumented(
  env: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {},
): Promise<RunningExisting> {
  const { config, warnings } = loadConfig({ env: { ...env, OMP_PORT: '0', ...more } });
  expect(warnings).toEqual([]);
  const gateway = await serve(config, recordingLog());
  const base = `http://127.0.0.1:${gateway.port}`;
  return { gateway, client: clientOf((path, init) => fetch(base + path, init)), close: gateway.close };
}

/** Runs `omp-gateway doctor --json` in this process. */
export async function askDoctor(env: Readonly<Record<string, string>>) {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const status = await runDoctor(['--json'], {
    env,
    stdout: { write: (text: string) => stdout.push(text) },
    stderr: { write: (text: string) => stderr.push(text) },
  });
  return { status, stdout: stdout.join(''), stderr: stderr.join('') };
}

/** What every record shows where its owner's table keeps no times and no more fields than a memory must have. */
export const withoutTimes = (embedding_model: string) =>
  ({
    created_at: '1970-01-01T00:00:00.000Z',
    updated_at: '1970-01-01T00:00:00.000Z',
    embedding_model,
    scope: null,
    tags: [],
    source: null,
    confidence: null,
    valid_from: null,
    valid_to: null,
    supersedes: [],
    status: null,
  }) satisfies Partial<WireMemory>;

/** As libraries send vectors: their text form. */
export const textOf = (vector: Float32Array): string => JSON.stringify([...vector]);

/** The documented configuration as it is written, on a table that its owner made. */
export function presetSuite(table: OwnersTable): void {
  const { page, heading, dimensions, shows, writable, users: [ANA, BEN] = ['ana', 'ben'] } = table;
  const title = `in front of ${page}${heading === undefined ? '' : `: ${heading}`}`;
  if (SERVER_URL === '') {
    describe(title, () => it('serves the table', ({ skip }) => skip(NO_SERVER)));
    return;
  }
  describe(title, () => {
    let db: OwnersDatabase;
    let openai: Awaited<ReturnType<typeof openAiServer>>;
    let env: Record<string, string>;
    let writing: Record<string, string>;
    let running: RunningExisting;
    const ids: string[] = [];
    const all = () => db.sql('select oid::int from pg_class order by oid');
    let before: unknown;
    let rows: Awaited<ReturnType<OwnersDatabase['rows']>>;

    const row = async (user: string, text: string, number: number): Promise<OwnersRow> => ({
      user,
      text,
      number,
      vector: await vectorOf(text, dimensions),
    });
    beforeAll(async () => {
      [db, openai] = await Promise.all([openOwnersDatabase(), openAiServer()]);
      for (const statement of table.ddl) await db.sql(statement.replaceAll(/\bgateway\b/g, db.role));
      for (const [number, text] of TEXTS.entries()) ids.push(await table.fill(db, await row(ANA, text, number)));
      if (!table.ownerless) await table.fill(db, await row(BEN, TEXTS[0], TEXTS.length));
      await table.hide?.(db, await row(ANA, 'hidden from everybody', TEXTS.length + 1));
      await db.grant('select');
      const documented = documentedEnvironment(page, heading);
      const there = { DATABASE_URL: db.roleUrl, OPENAI_BASE_URL: openai.base_url };
      writing = { ...documented, ...table.writing, ...there, OMP_MAPPING_WRITABLE: 'true' };
      const { OMP_MAPPING_WRITABLE: _, OMP_MAPPING_NEW_IDS: __, ...reading } = documented;
      // As it is written, but where it is for writing: that comes last.
      env = { ...reading, ...there };
      [before, rows] = await Promise.all([all(), db.rows()]);
      running = await serveDocumented(env);
    });
    afterAll(async () => {
      await running?.close();
      await openai?.close();
      await db?.close();
    });

    it('says what it can do, and no more', async () => {
      const { verbs, features } = await running.client.capabilities();
      expect([...verbs].sort()).toEqual(['context', 'get', 'list', 'search']);
      expect(features).toMatchObject({ temporal: table.temporal, scopes: table.scopes, keyword_search: false });
    });

    it('finds, lists and gets what the owner wrote, each user their own', async () => {
      const { client } = running;
      const [first] = await client.search({ user_id: ANA, q: TEXTS[1], limit: 2 });
      expect(first?.score).toBeCloseTo(1, 3);
      expect(first?.memory).toMatchObject({ id: ids[1], content: TEXTS[1], user_id: ANA, ...shows });
      const { items } = await client.list({ user_id: ANA });
      expect(items.map(({ id }) => id).sort()).toEqual([...ids].sort());
      for (const item of items) expect(await client.get(item.id)).toEqual(item);
      expect((await client.list({ user_id: BEN })).items).toHaveLength(table.ownerless ? 0 : 1);
      expect((await client.search({ user_id: 'nobody', q: TEXTS[0] })).length).toBe(0);
    });

    it('pages through a list', async () => {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await running.client.list({ user_id: ANA, limit: 1, cursor });
        seen.push(...page.items.map(({ id }) => id));
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
      expect(seen.sort()).toEqual([...ids].sort());
    });

    it('shows nobody what is no memory', async () => {
      const { client } = running;
      for (const { memory } of await client.search({ user_id: ANA, q: 'hidden from everybody' })) {
        expect(memory.content).not.toContain('hidden');
      }
    });

    it('refuses what the table cannot do, by name', async () => {
      const { client } = running;
      if (!table.temporal) {
        for (const bound of ['since', 'until']) {
          const { message } = expectError(
            await client.ask('/memories', { user_id: ANA, [bound]: '2026-01-01' }),
            'unsupported_capability',
          );
          expect(message).toContain(bound);
        }
      }
      if (table.scopes === 'none') {
        const reply = await client.ask('/memories', { user_id: ANA, scope: 'a/b' });
        expect(expectError(reply, 'unsupported_capability').message).toContain('scope');
      }
      const reply = await client.tell('POST', '/memories', { user_id: ANA, content: 'x' });
      expectError(reply, 'unsupported_capability');
    });

    it('doctor is green', async () => {
      const { status, stdout, stderr } = await askDoctor(env);
      expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
    });

    it(writable ? 'writes rows that the owner reads' : 'cannot be written', async () => {
      await db.grant('select, insert, update, delete');
      if (!writable) {
        const { read_only } = PRESETS[page as PresetName];
        await expect(serveDocumented(writing)).rejects.toThrow(
          `OMP_MAPPING_WRITABLE${read_only ? `: ${read_only}` : ''}`,
        );
        return;
      }
      expect(await askDoctor(writing)).toMatchObject({ status: 0 });
      const { client, close } = await serveDocumented(writing);
      try {
        const added = await client.add({ user_id: ANA, content: 'plays the cello', ...table.carries });
        expect(added).toMatchObject({ ...table.carries });
        expect(await client.get(added.id)).toEqual(added);
        expect(await table.read?.(db, added.id)).toEqual({ text: 'plays the cello', user: ANA });
        const [hit] = await client.search({ user_id: ANA, q: 'plays the cello', limit: 1 });
        expect(hit?.memory).toEqual(added);
        const changed = await client.update(added.id, { content: 'plays the violin' });
        expect(changed).toMatchObject({ ...added, content: 'plays the violin', updated_at: expect.any(String) });
        expect(await table.read?.(db, added.id)).toEqual({ text: 'plays the violin', user: ANA });
        await client.remove(added.id);
        expect(await db.rows()).toEqual(rows);
        const owners = await table.fill(db, await row(ANA, 'sings in a choir', TEXTS.length + 2));
        expect(await client.update(owners, { content: 'sings alone' })).toMatchObject({
          id: owners,
          content: 'sings alone',
        });
        expect(await table.read?.(db, owners)).toEqual({ text: 'sings alone', user: ANA });
        await client.remove(owners);
        if (table.scopes === 'none') {
          const reply = await client.tell('POST', '/memories', {
            user_id: ANA,
            content: 'x',
            confidence: 1,
            tags: ['a'],
          });
          const { message } = expectError(reply, 'unsupported_capability');
          expect(message).toContain('confidence');
          expect(message).toContain('tags');
        }
        expect((await client.list({ user_id: ANA })).items).toHaveLength(TEXTS.length);
      } finally {
        await close();
      }
    });

    it('made nothing in the database, and left what the owner wrote as it was', async () => {
      expect(await all()).toEqual(before);
      const after = await db.rows();
      for (const [name, lines] of Object.entries(rows)) expect(after[name]).toEqual(expect.arrayContaining([...lines]));
    });

    it('has indexes advised that the gateway takes, after which doctor misses none', async () => {
      for (const statement of documentedSql(page, heading)) {
        if (/^create (unique )?index/.test(statement)) await db.sql(statement);
      }
      const { client, close } = await serveDocumented(env);
      try {
        expect(await client.list({ user_id: ANA })).toEqual(await running.client.list({ user_id: ANA }));
        const found = await client.search({ user_id: ANA, q: TEXTS[1] });
        expect(found).toEqual(await running.client.search({ user_id: ANA, q: TEXTS[1] }));
      } finally {
        await close();
      }
      const { findings } = JSON.parse((await askDoctor(env)).stdout) as { findings: readonly Finding[] };
      expect(findings.filter(({ area, level }) => area === 'indexes' && level !== 'ok')).toEqual([]);
    });
  });
}
