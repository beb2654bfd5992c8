import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fixturesOf, GIVEN_TO_TABLES, loadPostgres } from '../mapped-collections/fixture.ts';
import { askDoctor, documentedEnvironment, openAiServer, serveDocumented, vectorOf } from './documented.ts';
import { type EmptyDatabase, openEmptyDatabase } from './library-database.ts';

/* Tables that libraries of Java and Go filled (`test/mapped-collections/record`), served with the settings of their pages. */

/** Settings besides those of the page, by the name of the fixture. */
const MORE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  springai: { OMP_MAPPING_USER_ID: "metadata->>'user_id'" },
  'langchain4j-java-columns': { OMP_MAPPING_USER_ID: 'user_id' },
};
const PAGES: Readonly<Record<string, string>> = { springai: 'spring-ai' };

const FIXTURES = fixturesOf('postgres').filter(({ language }) => language === 'java' || language === 'go');

/** The stored vectors have length 1 to this precision, within which measures may disagree. */
const TIE = 0.003;

const cosine = async (a: string, b: string) => {
  const [x, y] = await Promise.all([vectorOf(a, 8), vectorOf(b, 8)]);
  const product = (p: Float32Array, q: Float32Array) =>
    p.reduce((sum, value, at) => sum + value * (q[at] as number), 0);
  // The gateway counts a negative one as 0.
  return Math.max(0, product(x, y) / Math.sqrt(product(x, x) * product(y, y)));
};

describe('tables that libraries of Java and Go filled', () => {
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

  it.each(FIXTURES)('$name is served by its page, and ranked as the library ranks it', async (fixture) => {
    await loadPostgres(db.sql, fixture);
    const { library, name, ids, searches } = fixture;
    const env = {
      ...documentedEnvironment(PAGES[library] ?? library),
      ...{ DATABASE_URL: db.url, OMP_POSTGRES_CONNECTIONS: '1', OPENAI_BASE_URL: openai.base_url },
      ...{ OMP_EMBEDDING_MODEL: 'eight', ...MORE[library], ...MORE[name.replace('postgres-', '')] },
    };
    const { status, stdout } = await askDoctor(env);
    expect(status, stdout).toBe(0);
    const { client, close } = await serveDocumented(env);
    try {
      const keys = new Map(Object.entries(ids).map(([key, id]) => [id, key]));
      for (const user_id of ['ana', 'ben']) {
        const { items } = await client.list({ user_id });
        const theirs = [...GIVEN_TO_TABLES.values()].filter((given) => given.user_id === user_id);
        expect(items.map(({ id }) => keys.get(id)).sort()).toEqual(theirs.map(({ key }) => key).sort());
        for (const { id, content } of items) expect(content).toBe(GIVEN_TO_TABLES.get(keys.get(id) ?? '')?.text);
        expect(await client.get(items[0]?.id ?? '')).toEqual(items[0]);
      }
      expect((await client.list({ user_id: 'nobody' })).items).toEqual([]);
      for (const { user_id, text, found } of searches) {
        const hits = await client.search({ user_id, q: text, limit: 10 });
        // Spring AI finds none below a threshold, the others as many as there are.
        if (library !== 'springai') expect(found).toHaveLength(hits.length);
        for (const [at, key] of found.entries()) {
          const theirs = await cosine(text, GIVEN_TO_TABLES.get(key)?.text ?? '');
          expect(Math.abs((hits[at]?.score ?? -1) - theirs)).toBeLessThan(TIE);
          expect(Math.abs((await cosine(text, hits[at]?.memory.content ?? '')) - theirs)).toBeLessThan(TIE);
        }
      }
    } finally {
      await close();
    }
  });
});
