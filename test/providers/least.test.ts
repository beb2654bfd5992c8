import { expect, it } from 'vitest';
import { z } from 'zod';
import { FACETS, isMethod, METHODS, type Method, type Methods } from '#contract';
import {
  analyseLater,
  byScore,
  defineProvider,
  type Memory,
  newestFirst,
  newRecord,
  queryTerms,
  type Ref,
  roundScore,
  upToBytes,
} from '#provider';
import { providerTests } from '../conformance/provider-tests.ts';

/** The least that an author must write. `by`: the one verb that finds memories. */
const least = (by: 'list' | 'search') =>
  defineProvider({
    specVersion: 1,
    name: 'least',
    options: z.strictObject({}),
    async open() {
      const memories = new Map<string, Memory>();
      const of = (user_id: string) => [...memories.values()].filter((memory) => memory.user_id === user_id);
      return {
        async add({ input }) {
          const memory = newRecord(input, null);
          memories.set(memory.id, memory);
          return memory;
        },
        async get({ id, users }: Ref) {
          const memory = memories.get(id);
          return memory && (users?.includes(memory.user_id) ?? true) ? memory : undefined;
        },
        ...(by === 'list'
          ? {
              async list({ user_id, after, limit, max_bytes }) {
                const page = of(user_id)
                  .filter((memory) => !after || newestFirst(memory, after) > 0)
                  .sort(newestFirst)
                  .slice(0, limit);
                return upToBytes(page, max_bytes, (memory) => memory);
              },
            }
          : {
              capabilities: { keyword_search: true },
              async search({ user_id, text, limit, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY }, call) {
                const terms = queryTerms(text);
                const found = await Promise.all(
                  of(user_id)
                    .filter(({ content }) => Buffer.byteLength(content) <= max_content_bytes)
                    .map(async (memory) => ({
                      memory,
                      words: new Set(await analyseLater(memory.content, call)),
                    })),
                );
                const hits = found.map(({ memory, words }) => {
                  const score = roundScore(terms.filter((term) => words.has(term)).length / Math.max(1, terms.length));
                  return { memory, score };
                });
                return upToBytes(hits.sort(byScore).slice(0, limit), max_bytes, ({ memory }) => memory);
              },
            }),
        async ping() {},
        async close() {},
      };
    },
  });

providerTests(least('list'), () => ({ volatile: true }), 'the least provider, with list');
providerTests(least('search'), () => ({ mode: 'keyword', volatile: true }), 'the least provider, with search');

const complete = { get: async () => undefined, ping: async () => {}, close: async () => {} };
const opened = async (members: object, specVersion: 1 | 2 = 2) =>
  defineProvider({
    specVersion,
    name: 'odd',
    open: async () => ({ ...complete, ...members }) as never,
  }).open({}, {} as never);

it.each([
  [{ ping: undefined, close: undefined }, 'the provider odd has no ping, close, which every provider has'],
  [{ capabilities: { tagz: true } }, 'the provider odd declares tagz, which is no capability'],
  [{ capabilities: { scopes: 'natve' } }, 'the provider odd declares scopes "natve": one of native, tags, none'],
])('[Decision 50] %j is refused when the provider opens', async (members, message) => {
  for (const version of [1, 2] as const) await expect(opened(members, version)).rejects.toThrow(message);
});

const method = async () => undefined;
const facetOf = (methods: Methods): object => Object.fromEntries(Object.keys(methods).map((name) => [name, method]));
/** Members of a provider, whole. */
const WHOLE: Readonly<Record<string, unknown>> = Object.fromEntries(
  [...Object.entries<Method | Methods>(METHODS), ['ingestion', {}] satisfies [string, Methods]].map(
    ([member, entry]) => [member, isMethod(entry) ? method : facetOf(entry)],
  ),
);
const PARTS: readonly (readonly [string, object, string])[] = [
  ...Object.entries(FACETS).flatMap(([member, needs]) =>
    needs.map(
      (need) =>
        [`${member} without ${need}`, { ...WHOLE, [need]: undefined }, `without ${need}: they come together`] as const,
    ),
  ),
  ...Object.entries<Method | Methods>(METHODS).flatMap(([facet, entry]) =>
    isMethod(entry)
      ? []
      : Object.keys(entry).map(
          (name) =>
            [
              `${facet} without ${name}`,
              { ...WHOLE, [facet]: { ...(WHOLE[facet] as object), [name]: undefined } },
              `has ${facet} without its ${name}`,
            ] as const,
        ),
  ),
];

it.each(PARTS)('[Decision 50] %s is refused since version 2 of the contract', async (_, members, message) => {
  await expect(opened(members)).rejects.toThrow(message);
  await expect(opened(members, 1)).resolves.toMatchObject({ name: 'odd' });
});

it('[Decision 50] a provider that has everything is whole', async () => {
  await expect(opened(WHOLE)).resolves.toMatchObject({ name: 'odd' });
});
