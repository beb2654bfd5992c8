import { createHash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { sendJson } from '../embedding/embeddings-server.ts';
import type { Query } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { librarySuite } from './library-suite.ts';
import { type Mem0, openMem0 } from './owner-libraries.ts';
import { presetSuite } from './preset-suite.ts';

const md5 = (text: string) => createHash('md5').update(text).digest('hex');

// mem0 for Python: mem0/vector_stores/pgvector.py, `insert`.
const insert = 'INSERT INTO memories (id, vector, payload) VALUES ($1, $2, $3)';

presetSuite({
  page: 'mem0',
  // `create_col` of both libraries, Python's with `hnsw`.
  ddl: [
    `
                CREATE TABLE IF NOT EXISTS memories (
                    id UUID PRIMARY KEY,
                    vector vector(1536),
                    payload JSONB
                );
                `,
    `
                    CREATE INDEX IF NOT EXISTS memories_hnsw_idx
                    ON memories
                    USING hnsw (vector vector_cosine_ops)
                    `,
  ],
  dimensions: 1536,
  async fill(db, { user, text, vector, number }) {
    const id = randomUUID();
    // mem0/memory/main.py, Phase 4
    const payload = {
      user_id: user,
      data: text,
      text_lemmatized: text,
      hash: md5(text),
      created_at: `2026-03-01T10:00:0${number}.123456+00:00`,
      updated_at: `2026-03-02T10:00:0${number}.123456+00:00`,
    };
    await db.sql(insert, [id, `[${vector.join(',')}]`, JSON.stringify(payload)]);
    return id;
  },
  async hide(db, { user, text, vector }) {
    for (const payload of [
      { agent_id: user, data: text },
      { user_id: user, memory: text },
      { user_id: user, data: '' },
      null,
    ]) {
      await db.sql(insert, [randomUUID(), `[${vector.join(',')}]`, JSON.stringify(payload)]);
    }
  },
  shows: {
    created_at: expect.stringMatching(/^2026-03-01T10:00:0\d\.123Z$/),
    updated_at: expect.stringMatching(/^2026-03-02T10:00:0\d\.123Z$/),
    embedding_model: 'text-embedding-3-small',
  },
  temporal: true,
  scopes: 'none',
  writable: false,
});

/** What the page says of rows that the TypeScript library wrote. */
const TYPESCRIPT = {
  OMP_MAPPING_CREATED_AT: "payload->>'createdAt'",
  OMP_MAPPING_UPDATED_AT: "payload->>'updatedAt'",
};

librarySuite('mem0 for TypeScript itself in front of the same table', 'mem0', ({ beside, prepare }) => {
  let mem0: Mem0;
  const ids: string[] = [];
  prepare(async ({ db, openai, closing }) => {
    const opened = await openMem0(db.url, openai.base_url);
    closing(opened.close);
    mem0 = opened.memory;
    for (const [userId, text] of [
      ['ana', 'the ferry leaves at nine'],
      ['ana', 'allergic to peanuts'],
      ['ben', 'lives in Lisbon'],
    ] as const) {
      const { results } = await mem0.add(text, { userId, infer: false });
      ids.push(...results.map(({ id }) => id));
    }
    await mem0.add('belongs to an agent', { agentId: 'ana', infer: false });
  });

  it('it writes, changes and deletes, the gateway reads', async () => {
    const client = await beside().serve(TYPESCRIPT);
    const [ferry, peanuts, lisbon] = ids as [string, string, string];
    const [hit] = await client.search({ user_id: 'ana', q: 'allergic to peanuts', limit: 1 });
    expect(hit).toMatchObject({ memory: { id: peanuts, content: 'allergic to peanuts', user_id: 'ana' } });
    expect(hit?.score).toBeCloseTo(1, 3);
    const idsOf = async (query: Query) => (await client.list(query)).items.map(({ id }) => id).sort();
    expect(await idsOf({ user_id: 'ana' })).toEqual([ferry, peanuts].sort());
    expect(await idsOf({ user_id: 'ben' })).toEqual([lisbon]);
    const before = await client.get(peanuts);
    expect(before.updated_at).toBe(before.created_at);
    expect(await idsOf({ user_id: 'ana', since: before.created_at })).toContain(peanuts);
    expect(await idsOf({ user_id: 'ana', until: '2020-01-01' })).toEqual([]);

    await mem0.update(peanuts, { text: 'allergic to walnuts' });
    const after = await client.get(peanuts);
    expect(after).toMatchObject({ content: 'allergic to walnuts', created_at: before.created_at });
    expect(Date.parse(after.updated_at ?? '')).toBeGreaterThan(Date.parse(after.created_at));
    await mem0.delete(ferry);
    expectError(await client.ask(client.byId(ferry)), 'not_found');
  });

  it('why it is read-only: of a text that the gateway changed, mem0 goes on knowing the old one', async () => {
    const custom = await beside().serve({
      ...TYPESCRIPT,
      OMP_MAPPING_PRESET: 'custom',
      OMP_MAPPING_TABLE: 'memories',
      OMP_MAPPING_ID: 'id',
      OMP_MAPPING_NEW_IDS: 'uuid',
      OMP_MAPPING_EMBEDDING: 'vector',
      OMP_MAPPING_CONTENT: "payload->>'data'",
      OMP_MAPPING_USER_ID: "payload->>'user_id'",
      OMP_MAPPING_WRITABLE: 'true',
    });
    const old = 'drinks tea in the morning';
    const [added] = (await mem0.add(old, { userId: 'cleo', infer: false })).results;
    const id = added?.id ?? '';
    await custom.update(id, { content: 'drinks coffee in the morning' });
    expect(await mem0.get(id)).toMatchObject({ memory: 'drinks coffee in the morning', hash: md5(old) });

    // The language model finds the old text again; mem0 takes it for a duplicate and drops it.
    const embeddings = beside().openai.answer;
    beside().openai.answer = (request, response) => {
      if (!request.path?.endsWith('/chat/completions')) return embeddings(request, response);
      const content = JSON.stringify({ memory: [{ text: old }] });
      sendJson(response, 200, { choices: [{ message: { role: 'assistant', content } }] });
    };
    expect(await mem0.add(old, { userId: 'cleo' })).toEqual({ results: [] });
    const { results } = await mem0.getAll({ filters: { user_id: 'cleo' } });
    expect(results.map(({ memory }) => memory)).toEqual(['drinks coffee in the morning']);
  });
});
