import { type Embedder, type Memory, type NewMemory, OmpError, type Ref, type Visible, type Within } from '#contract';
import { withMemories } from '#toolbox';
import type { MountedStore, Store, StoreMembers } from '../../src/core/store.ts';
import { idPrefix, NOT_AT_MOUNT } from '../../src/stores/at-mount.ts';
import { mountStores } from '../../src/stores/mount-stores.ts';
import { recordingLog } from './gateway.ts';
import { hashingEmbedder } from './hashing-embedder.ts';
import type { Subject, SubjectOptions } from './subject.ts';

/** A store to mount. */
export interface Mount extends Partial<Pick<MountedStore, 'required' | 'weight'>> {
  readonly name: string;
  readonly mount: string;
  open(options: Partial<SubjectOptions>): Promise<Subject>;
  /** Changes what the gateway sees of it, also later. */
  readonly current?: (store: Store) => Store;
}

/** A gateway on several stores, which share an embedder. Closing it closes them all. */
export async function openMounted(
  openRoot: (options: Partial<SubjectOptions>) => Promise<Subject>,
  mounts: readonly Mount[],
  options: Partial<SubjectOptions> = {},
): Promise<Subject> {
  const shared = { embedder: hashingEmbedder(), ...options };
  const subjects: Subject[] = [];
  const mounted: MountedStore[] = [];
  for (const { name, mount, required = true, weight = 1, open, current = (store: Store) => store } of mounts) {
    const arrange = async (store: Store, embedder: Embedder | undefined) => {
      mounted.push({ name, mount, provider: name, required, weight, embedder, current: () => current(store) });
      return store;
    };
    subjects.push(await open({ ...shared, mounted: { name, arrange } }));
  }
  const root = await openRoot({
    ...shared,
    mounted: {
      arrange: async (store, embedder) => {
        const all = mountStores({ root: store, embedder, mounted, log: recordingLog() });
        // Each subject closes its own store.
        const close = () => (all.mounts?.close() ?? Promise.resolve()).then(store.close);
        return Object.defineProperty(all, 'close', { value: close });
      },
    },
  });
  const close = async () => {
    await root.close();
    for (const subject of subjects) await subject.close();
  };
  return { ...root, close };
}

const NAME = 'attic';
const MOUNT = 'house/attic';
const PREFIX = idPrefix(NAME);

/** Opens a subject on a store that is mounted below another, seen as if it were not: every suite must pass as without. */
export const mountedBelow = (openRoot: () => Promise<Subject>): Pick<Required<SubjectOptions>, 'mounted'> => ({
  mounted: {
    name: NAME,
    async arrange(store, embedder) {
      const root = await openRoot();
      return seenFrom(mounting(root, embedder, store), store, root.close);
    },
  },
});

const mounting = ({ provider: root }: Subject, embedder: Embedder | undefined, store: Store): Store =>
  mountStores({
    root,
    embedder: undefined,
    log: recordingLog(),
    mounted: [
      { name: NAME, mount: MOUNT, provider: store.name, required: true, weight: 1, embedder, current: () => store },
    ],
  });

/** What the gateway shows below the mount, in the names of the store itself. */
function seenFrom(all: Store, own: Store, closeRoot: () => Promise<void>): Store {
  const hasScopes = own.capabilities.scopes !== 'none';
  const requireNone = (scope: unknown) => {
    if (scope !== undefined && !hasScopes) throw new OmpError('unsupported_capability', 'scope: none here');
  };
  const inner = (id: string) => (id.startsWith(PREFIX) ? id.slice(PREFIX.length) : id);
  const outer = (id: string) => PREFIX + id;
  const innerScope = (scope: string | null) =>
    scope === null || scope === MOUNT ? null : scope.slice(MOUNT.length + 1);
  const outerScope = (scope: string | null) => (scope === null ? MOUNT : `${MOUNT}/${scope}`);
  const up = (memory: Memory): Memory => ({
    ...memory,
    id: inner(memory.id),
    scope: innerScope(memory.scope),
    supersedes: memory.supersedes.map(inner),
  });
  const down = <Fields extends NewMemory>(fields: Fields): Fields => ({
    ...fields,
    scope: outerScope(fields.scope),
    supersedes: fields.supersedes.map(outer),
  });
  const within = (globs: Within): Within => globs?.map((glob) => `${MOUNT}/${glob}`) ?? [MOUNT, `${MOUNT}/*`];
  const visible = <Query extends Visible>(query: Query): Query => ({ ...query, within: within(query.within) });
  const ref = (one: Ref): Ref => ({ ...visible(one), id: outer(one.id) });
  const has = <Member extends keyof Store>(member: Member): Required<Store>[Member] | undefined =>
    own[member] === undefined ? undefined : (all[member] as Required<Store>[Member]);
  const [add, batch, update, remove, list] = [has('add'), has('batch'), has('update'), has('delete'), has('list')];
  const [search, users, userStats] = [has('search'), has('users'), has('userStats')];
  const [exportPart, importMemories, versions] = [has('export'), has('import'), has('versions')];
  const neighbours = has('neighbours');
  const members: StoreMembers = {
    ...NOT_AT_MOUNT,
    name: own.name,
    capabilities: own.capabilities,
    embedding: own.embedding,
    idempotent: own.idempotent,
    read_only: own.read_only,
    freezing: undefined,
    stats: own.stats,
    backlog: own.backlog,
    queryVector: undefined,
    ping: all.ping,
    async close() {
      await own.close();
      await closeRoot();
    },
    userUsage: has('userUsage'),
    erase: has('erase'),
    versions: versions && {
      async list({ ref: one, ...query }, call) {
        const found = await versions.list({ ref: ref(one), ...query }, call);
        return (
          found && {
            ...found,
            current: up(found.current),
            versions: found.versions.map((one) => withMemories(one, up)),
          }
        );
      },
      purge: (one, call) => versions.purge(ref(one), call),
      async writtenIn({ after, ...query }, call) {
        const part = all.mounts?.parts.find(({ name }) => name === NAME)?.store.versions;
        return ((await part?.writtenIn?.({ ...query, after: after && outer(after) }, call)) ?? []).map(inner);
      },
    },
    // They are of all stores: test/stores/mounts-answers.test.ts.
    add: add && (async ({ input, ...rest }, call) => up(await add({ input: down(input), ...rest }, call))),
    batch:
      batch &&
      (async ({ inputs, ...rest }, call) => {
        const outcomes = await batch({ inputs: inputs.map((input) => input && down(input)), ...rest }, call);
        return outcomes.map((outcome) => (outcome && !(outcome instanceof OmpError) ? up(outcome) : outcome));
      }),
    async get(one, call) {
      const memory = await all.get(ref(one), call);
      return memory && up(memory);
    },
    update:
      update &&
      (async ({ ref: one, patch: { scope, supersedes, ...rest }, limits }, call) => {
        const patch = {
          ...rest,
          ...(scope !== undefined && { scope: outerScope(scope) }),
          ...(supersedes && { supersedes: supersedes.map(outer) }),
        };
        if (!hasScopes) requireNone(scope);
        const memory = await update({ ref: ref(one), patch, limits }, call);
        return memory && up(memory);
      }),
    delete: remove && ((one, call) => remove(ref(one), call)),
    list:
      list &&
      (async ({ scope, after, ...query }, call) => {
        requireNone(scope);
        const memories = await list(
          {
            ...visible(query),
            ...(scope !== undefined && { scope: outerScope(scope as string) }),
            ...(after && { after: { ...after, id: outer(after.id) } }),
          },
          call,
        );
        return memories.map(up);
      }),
    search:
      search &&
      (async ({ scope, ...query }, call) => {
        requireNone(scope);
        const hits = await search(
          { ...visible(query), ...(scope !== undefined && { scope: outerScope(scope) }) },
          call,
        );
        return hits.map(({ memory, parts, ...hit }) => {
          const { store: _, store_weight: __, ...rest } = { ...parts } as Record<string, unknown>;
          return { ...hit, memory: up(memory), ...(parts && { parts: rest as unknown as typeof parts }) };
        });
      }),
    neighbours:
      neighbours &&
      (async (query, call) => (await neighbours({ ...visible(query), ids: query.ids.map(outer) }, call)).map(up)),
    users: users && ((query, call) => users(visible(query), call)),
    userStats:
      userStats &&
      (async (query, call) => {
        const stats = await userStats(visible(query), call);
        return { ...stats, scopes: stats.scopes.map(({ scope, count }) => ({ scope: innerScope(scope), count })) };
      }),
    export:
      exportPart &&
      (async (query, call) => {
        const wanted = { ...query, ids: query.ids?.map(outer) };
        let { items, next } = await exportPart(wanted, call);
        // The part of the root store is empty.
        while (items.length === 0 && next !== undefined)
          ({ items, next } = await exportPart({ ...wanted, after: next }, call));
        return { items: items.map((item) => withMemories(item, up)), next };
      }),
    import:
      importMemories &&
      (({ items, replace }, call) =>
        importMemories(
          {
            items: items.map((item) => withMemories(item, (memory) => ({ ...down(memory), id: outer(memory.id) }))),
            replace,
          },
          call,
        )),
  };
  return members as Store;
}
