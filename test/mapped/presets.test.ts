import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Finding } from '#contract';
import { PRESET_NAMES, PRESETS, type PresetName } from '../../providers/postgres/mapped/presets.ts';
import { expectError } from '../support/expect-error.ts';
import { FULL } from '../support/full.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import {
  askDoctor,
  documentedEnvironment,
  documentedSql,
  openAiServer,
  type RunningMapped,
  serveDocumented,
  vectorOf,
} from './documented.ts';
import { exported } from './exported.ts';
import { type LibraryDatabase, openLibraryDatabase } from './library-database.ts';
import { PRESET_TABLES, type PresetRow, withoutTimes } from './preset-tables.ts';

/** Together these have all shapes of a table. The others run in test:full. */
const ALWAYS: readonly string[] = ['custom', 'mem0', 'langchain-js'];
const TEXTS = ['the ferry leaves at nine', 'allergic to peanuts', 'prefers dark mode', 'lives in Lisbon'] as const;

it('has a table for every preset', () => {
  expect(new Set(PRESET_TABLES.map(({ page }) => page))).toEqual(new Set(PRESET_NAMES));
});

describe.skipIf(SERVER_URL === '')(`the tables of libraries${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, () => {
  let db: LibraryDatabase;
  let openai: Awaited<ReturnType<typeof openAiServer>>;
  beforeAll(async () => {
    if (SERVER_URL !== '') [db, openai] = await Promise.all([openLibraryDatabase(), openAiServer()]);
  });
  afterAll(async () => {
    await openai?.close();
    await db?.close();
  });

  const tables = PRESET_TABLES.filter(({ page }) => FULL || ALWAYS.includes(page));
  const cases = tables.map((table) => ({ title: [table.page, table.heading ?? []].flat().join(': '), table }));
  describe.each(cases)('$title', ({ table }) => {
    const { page, heading, dimensions = 1536, sharedByAll, temporal = false, scopes = 'none', hidden = [] } = table;
    const [ANA, BEN] = table.users ?? ['ana', 'ben'];
    const { read_only } = PRESETS[page as PresetName];
    const { shows = withoutTimes('text-embedding-3-small'), writable = read_only === undefined } = table;
    let env: Record<string, string>;
    let writing: Record<string, string>;
    let running: RunningMapped;
    const ids: string[] = [];
    const relations = () => db.sql('select oid::int from pg_class order by oid');
    let before: unknown;
    let rows: Awaited<ReturnType<LibraryDatabase['rows']>>;

    /** Returns the id that the gateway shows. */
    const insert = async (user: string, text: string, number: number, more: Partial<PresetRow> = {}) => {
      const vector = await vectorOf(text, dimensions);
      const written = { user, text, number, ...more };
      const row: PresetRow = {
        ...written,
        id: more.id ?? table.id?.(written) ?? randomUUID(),
        vector: JSON.stringify([...vector]),
        opposite: JSON.stringify([...vector.map((value) => -value)]),
        metadata:
          more.metadata === undefined ? (table.metadata?.(written) ?? { user_id: user, page: number }) : more.metadata,
        collection: more.collection === undefined ? (table.collection ?? null) : more.collection,
      };
      const values: unknown[] = [];
      const places = new Map<string, string>();
      const statement = table.insert.replaceAll(/(?<!:):([a-z]+)/g, (_, name: keyof PresetRow) => {
        if (!places.has(name)) places.set(name, `$${values.push(row[name])}`);
        return places.get(name) as string;
      });
      const [made] = await db.sql<{ id?: string }>(statement, values);
      return made?.id ?? row.id;
    };
    const count = async () => Object.values(await db.rows()).flat().length;
    const asLibraryReads = async (id: string) => (await db.sql(table.read as string, [id]))[0];
    beforeAll(async () => {
      await db.reset();
      for (const statement of table.ddl) await db.sql(statement.replaceAll(/\bgateway\b/g, db.role));
      for (const [number, text] of TEXTS.entries()) ids.push(await insert(ANA, text, number));
      if (!sharedByAll) await insert(BEN, TEXTS[0], 4);
      for (const more of hidden) await insert(ANA, 'hidden from everybody', 5, more);
      await db.grant('select');
      const documented = documentedEnvironment(page, heading);
      const urls = { DATABASE_URL: db.roleUrl, OPENAI_BASE_URL: openai.base_url };
      writing = { ...documented, ...table.writing, ...urls, OMP_MAPPING_WRITABLE: 'true' };
      // The last test but two writes.
      const { OMP_MAPPING_WRITABLE: _, OMP_MAPPING_NEW_IDS: __, ...reading } = documented;
      env = { ...reading, ...urls };
      [before, rows] = await Promise.all([relations(), db.rows()]);
      running = await serveDocumented(env);
    });
    afterAll(() => running?.close());

    it('serves the rows of the library, each user their own', async () => {
      const { client } = running;
      const { verbs, features } = await client.capabilities();
      expect([...verbs].sort()).toEqual(['context', 'get', 'list', 'search']);
      expect(features).toMatchObject({ temporal, scopes, keyword_search: false });
      const [first] = await client.search({ user_id: ANA, q: TEXTS[1], limit: 2 });
      expect(first?.score).toBeCloseTo(1, 3);
      expect(first?.memory).toMatchObject({ id: ids[1], content: TEXTS[1], user_id: ANA, ...shows });
      const { items } = await client.list({ user_id: ANA });
      expect(items.map(({ id }) => id).sort()).toEqual([...ids].sort());
      for (const item of items) expect(await client.get(item.id)).toEqual(item);
      const moved = await exported(client);
      expect(moved).toHaveLength(ids.length + (sharedByAll ? 0 : 1));
      expect(moved).toEqual(expect.arrayContaining([...items]));
      expect(await exported(client, { id: ids })).toHaveLength(ids.length);
      expect((await client.list({ user_id: BEN })).items).toHaveLength(sharedByAll ? 0 : 1);
      expect(await client.search({ user_id: 'nobody', q: TEXTS[0] })).toEqual([]);
      const found = await client.search({ user_id: ANA, q: 'hidden from everybody' });
      expect(found.filter(({ memory }) => memory.content.includes('hidden'))).toEqual([]);
      const reply = await client.tell('POST', '/memories', { user_id: ANA, content: 'x' });
      expectError(reply, 'unsupported_capability');
    });

    it('doctor finds no problem', async () => {
      const { status, stdout, stderr } = await askDoctor(env);
      expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
    });

    it(writable ? 'writes rows that the library reads' : 'cannot be written', async () => {
      await db.grant('select, insert, update, delete');
      if (!writable) {
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
        expect(await asLibraryReads(added.id)).toEqual({ text: 'plays the cello', user: ANA });
        const [hit] = await client.search({ user_id: ANA, q: 'plays the cello', limit: 1 });
        expect(hit?.memory).toEqual(added);
        const changed = await client.update(added.id, { content: 'plays the violin' });
        expect(changed).toMatchObject({ ...added, content: 'plays the violin', updated_at: expect.any(String) });
        expect(await asLibraryReads(added.id)).toEqual({ text: 'plays the violin', user: ANA });
        await client.remove(added.id);
        expect(await db.rows()).toEqual(rows);
        const inserted = await insert(ANA, 'sings in a choir', 6);
        const updated = await client.update(inserted, { content: 'sings alone' });
        expect(updated).toMatchObject({ id: inserted, content: 'sings alone' });
        expect(await asLibraryReads(inserted)).toEqual({ text: 'sings alone', user: ANA });
        await client.remove(inserted);
        expect((await client.list({ user_id: ANA })).items).toHaveLength(TEXTS.length);
        if (sharedByAll || table.users) return;
        await insert('eve', 'plays chess', 7);
        const withEve = await count();
        for (const more of hidden) await insert('eve', 'hidden from everybody', 8, more);
        expect((await client.tell('DELETE', '/users/eve/memories')).body).toMatchObject({ deleted: 1 });
        expect(await count()).toBe(withEve - 1 + hidden.length);
      } finally {
        await close();
      }
    });

    it('creates nothing in the database and keeps the rows of the library', async () => {
      expect(await relations()).toEqual(before);
      const after = await db.rows();
      for (const [name, lines] of Object.entries(rows)) expect(after[name]).toEqual(expect.arrayContaining([...lines]));
    });

    it('the indexes of the page are what doctor asks for, and change no answer', async () => {
      for (const statement of documentedSql(page, heading)) {
        if (/^create (unique )?index/.test(statement)) await db.sql(statement);
      }
      const answers = async () => [
        await running.client.list({ user_id: ANA }),
        await running.client.search({ user_id: ANA, q: TEXTS[1] }),
      ];
      const without = await answers();
      await running.close();
      running = await serveDocumented(env);
      expect(await answers()).toEqual(without);
      const { findings } = JSON.parse((await askDoctor(env)).stdout) as { findings: readonly Finding[] };
      expect(findings.filter(({ area, level }) => area === 'indexes' && level !== 'ok')).toEqual([]);
    });
  });
});
