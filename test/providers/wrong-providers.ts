import {
  analyseLater,
  type Call,
  defineProvider,
  type Memory,
  type ProviderMethods,
  type ProviderModule,
  type SearchHit,
  type SearchQuery,
} from '#provider';
import memory from '../../providers/memory/index.ts';
import { createUser } from '../../providers/memory/user.ts';
import { blindToMounts } from '../stores/mounts-subject.ts';

/*
 * Providers that are each wrong in one way, which the published suite has to find (`wrong-providers.test.ts`). They keep what they store for
 * as long as this process runs, whatever is closed.
 */

type Methods = Required<Awaited<ReturnType<typeof memory.open>>>;
type Context = Parameters<typeof memory.open>[1];

interface Wrong {
  /** A part of the title of a test that has to fail. */
  readonly fails: string;
  change?(right: Methods, context: Context): Partial<Methods>;
  readonly forgets?: true;
  readonly takesAnyEmbedder?: true;
}

/** The stored vectors, by id. */
async function vectorsIn(exportPart: Methods['export'], ids: readonly string[], call: Call) {
  const { items } = await exportPart({ ids, vectors: true, limit: ids.length + 1, max_bytes: 1e9 }, call);
  return new Map(items.map(({ memory, vector }) => [memory.id, vector] as const));
}

/** A search that ranks these memories by themselves, as if each had this content. */
async function rankedAlone(
  { export: exportPart }: Methods,
  { embedder, ranking }: Context,
  { memories, contentOf }: { readonly memories: readonly Memory[]; contentOf(memory: Memory): string },
  [query, call]: readonly [SearchQuery, Call],
): Promise<SearchHit[]> {
  const user = createUser(embedder?.dimensions, ranking);
  const ids = memories.map(({ id }) => id);
  const vectors = await vectorsIn(exportPart, ids, call);
  for (const one of memories)
    user.add(one, { vector: vectors.get(one.id) ?? null, terms: await analyseLater(contentOf(one), call) });
  return user.search(query);
}

const all = { within: null, tags: [], limit: 500, max_bytes: 1e9 } as const;

export const WRONG: Readonly<Record<string, Wrong>> = {
  'overlooks outside': { fails: 'what a mount hides', change: (right) => blindToMounts(right) as Partial<Methods> },
  'drops hits with score 0': {
    fails: 'with vectors every memory is a hit',
    change: ({ search }) => ({
      search: async (query, call) => (await search(query, call)).filter(({ score }) => score > 0),
    }),
  },
  'counts the rarity of what passes the filters': {
    fails: 'a tag filters a search before its limit',
    change: (right, context) => ({
      async search(query, call) {
        const { user_id, tags } = query;
        const memories = await right.list({ ...all, user_id, tags }, call);
        return rankedAlone(right, context, { memories, contentOf: ({ content }) => content }, [query, call]);
      },
    }),
  },
  'overlooks max_bytes of a list': {
    fails: 'max_bytes ends a list',
    change: ({ list }) => ({ list: (query, call) => list({ ...query, max_bytes: 1e9 }, call) }),
  },
  'keeps the old vector of a patched content': {
    fails: 'a patched content is found',
    change: ({ update, export: exportPart }) => ({
      async update({ vector, ...request }, call) {
        const { id } = request.ref;
        const old = await vectorsIn(exportPart, [id], call);
        return update({ ...request, vector: vector && (old.get(id) ?? null) }, call);
      },
    }),
  },
  'keeps the old words of a patched content': {
    fails: 'a patched content is found',
    change: (right, context) => {
      const first = new Map<string, string>();
      return {
        async update(request, call) {
          const before = await right.get(request.ref, call);
          if (before && !first.has(before.id)) first.set(before.id, before.content);
          return right.update(request, call);
        },
        async search(query, call) {
          const memories = await right.list({ ...all, user_id: query.user_id }, call);
          const contentOf = ({ id, content }: Memory) => first.get(id) ?? content;
          return rankedAlone(right, context, { memories, contentOf }, [query, call]);
        },
      };
    },
  },
  'keeps nothing': { fails: 'has what was acknowledged', forgets: true },
  'takes any embedder': { fails: 'refuses an embedder of another model', takesAnyEmbedder: true },
  'overlooks max_content_bytes': {
    fails: 'contents above max_content_bytes',
    change: ({ search }) => ({ search: ({ max_content_bytes: _, ...query }, call) => search(query, call) }),
  },
  'holds nothing': {
    fails: 'holdings count what there is',
    change: () => ({ holdings: async () => ({ memories: 0 }) }),
  },
  right: { fails: '' },
};

/** The memory provider with one of these mistakes. */
export function wrongProvider(name: string): ProviderModule {
  const { change, forgets, takesAnyEmbedder } = WRONG[name] as Wrong;
  const stores = new Map<string, { readonly opened: ProviderMethods; readonly model: string | undefined }>();
  return defineProvider({
    specVersion: 2,
    name: 'wrong',
    async open(_, context) {
      const known = forgets ? undefined : stores.get(context.data_dir);
      const model = context.embedder?.model;
      if (known && known.model !== model && !takesAnyEmbedder) throw new Error(`its vectors are of ${known.model}`);
      if (known) return known.opened;
      const right = (await memory.open({}, context)) as Methods;
      const opened = { ...right, ...change?.(right, context), close: async () => {} };
      stores.set(context.data_dir, { opened, model });
      return opened;
    },
  });
}
