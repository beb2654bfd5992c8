import type { Embedder, Log, Provider, ProviderContext } from '#contract';
import {
  auditOptions,
  embeddingOptions,
  providerOptions,
  userLimitOptions,
  versionOptions,
} from './config/config-options.ts';
import { errorInStore } from './config/mounted-stores.ts';
import { type Config, isBuiltIn, type StoreConfig } from './config/settings.ts';
import { compose } from './core/compose.ts';
import type { MountedStore, Store } from './core/store.ts';
import { type Protect, startEmbedder } from './embedding/open.ts';
import { nameOf, openProvider } from './registry.ts';
import type { OpenParts } from './shutdown.ts';
import { mountStores } from './stores/mount-stores.ts';
import { unopenedStore } from './stores/unopened.ts';

/** All stores of a configuration, open. */
export interface OpenStores {
  /** All of them as one. */
  readonly store: Store;
  /** Of the root store. */
  readonly embedder: Embedder | undefined;
  readonly mounted: readonly MountedStore[];
}

export interface StoreParts {
  readonly protect: Protect;
  readonly parts: OpenParts;
  readonly log: Log;
}

/** Pauses between attempts to open an optional store, in milliseconds. They double up to the longest. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** Opens the root store and those that are mounted, all at once. Rejects with a message that names the store and what to do. */
export async function openStores(config: Config, { protect, parts, log }: StoreParts): Promise<OpenStores> {
  const embedders: Embedder[] = [];
  const embedderOf = createEmbedders({ protect, parts, log }, embedders);
  const isPaid = [config, ...config.stores.map((one) => one.config)].some(
    (one) => one.search.mode !== 'keyword' && embeddingOptions(one).kind === 'openai',
  );
  const takeUsage = () => embedders.flatMap(({ usage }) => usage?.take() ?? []);
  const open = async (own: Config, name?: string) => {
    const loading = own.search.mode === 'keyword' ? undefined : embedderOf(own, name);
    const openOn = async (embedder: Embedder | undefined) => {
      const context: ProviderContext = {
        embedder: embedder && { model: embedder.model, dimensions: embedder.dimensions },
        ranking: own.search,
        // The entries of mounted stores are written to the log of the root store.
        audit: name === undefined ? auditOptions(config) : undefined,
        versions: versionOptions(own),
        user_limits: userLimitOptions(config) !== undefined,
        data_dir: own.data_dir,
        max_record_bytes: 2 * config.max_request_bytes,
        log,
      };
      const backend = await openProvider(own.provider, providerOptions(own), context);
      if (context.user_limits && cannotLimit(backend)) {
        await backend.close();
        throw new Error(NO_USER_LIMITS(name ?? backend.name));
      }
      const protection = protect(name ?? backend.name, backend.ping);
      return compose(backend, {
        embedder,
        log,
        protection,
        ...(name === undefined ? isPaid && { takeUsage } : { name }),
      });
    };
    const part = name === undefined ? 'provider' : `stores.${name}`;
    const store = await parts.open(part, Promise.resolve(loading).then(openOn));
    const embedder = await loading;
    // The bundled model loads while the database starts.
    await embedder?.loaded;
    return { store, embedder };
  };

  // The first that is opened is closed last: the root store keeps what the embedders of all stores used.
  const opening = open(config);
  const openingMounted = Promise.all(config.stores.map((one) => openMounted(one, open, { parts, log })));
  // The root store may fail first.
  openingMounted.catch(() => {});
  const { store: root, embedder } = await opening;
  const mounted = await openingMounted;
  const store = mountStores({ root, embedder, mounted, log });
  if (store.mounts) parts.add('entries of mounted stores', store.mounts.close);
  return { store, embedder, mounted };
}

/** Limits that only some stores keep would not be limits. */
const cannotLimit = ({ add, update, userUsage }: Provider): boolean =>
  (add !== undefined || update !== undefined) && userUsage === undefined;
const NO_USER_LIMITS = (store: string): string =>
  `user_limits is set, and the store ${store} cannot count exactly what a user has; remove user_limits, make that store read-only, or use the gateway's own tables in Postgres`;

type Open = (
  config: Config,
  name: string,
) => Promise<{ readonly store: Store; readonly embedder: Embedder | undefined }>;

/** An optional store that cannot be opened is tried again until it can: the gateway starts without it. */
async function openMounted(
  { name, mount, required, weight, config }: StoreConfig,
  open: Open,
  { parts, log }: Pick<StoreParts, 'parts' | 'log'>,
): Promise<MountedStore> {
  let current: Awaited<ReturnType<Open>> = { store: unopenedStore(name), embedder: undefined };
  // A package or a path says its name once it is loaded; the path must not be shown.
  let provider: string = isBuiltIn(config.provider) ? config.provider : name;
  let timer: NodeJS.Timeout | undefined;
  const attempt = async (pause: number): Promise<void> => {
    try {
      current = await open(config, name);
      provider = await nameOf(config.provider);
      if (pause > FIRST_PAUSE_MS) log.info({ store: name }, `the store ${name} is open`);
    } catch (error) {
      const failure = errorInStore(name, error);
      if (required) throw failure;
      if (pause === FIRST_PAUSE_MS)
        log.warn({ store: name, err: failure }, `${failure.message}; the gateway starts without it and keeps trying`);
      timer = setTimeout(() => void attempt(Math.min(2 * pause, LONGEST_PAUSE_MS)), pause).unref();
    }
  };
  parts.add(`attempts to open stores.${name}`, async () => clearTimeout(timer));
  await attempt(FIRST_PAUSE_MS);
  return {
    name,
    mount,
    get provider() {
      return provider;
    },
    required,
    weight,
    get embedder() {
      return current.embedder;
    },
    current: () => current.store,
  };
}

/** Stores with the same settings share an embedder, which then embeds a query once for all of them. All go into `opened`. */
function createEmbedders({ protect, parts, log }: StoreParts, opened: Embedder[]) {
  const open = new Map<string, ReturnType<typeof startEmbedder>>();
  return (config: Config, name: string | undefined): ReturnType<typeof startEmbedder> => {
    const options = embeddingOptions(config);
    const key = JSON.stringify(options);
    const existing = open.get(key);
    if (existing) return existing;
    const part = name === undefined ? 'embedder' : `embedder of stores.${name}`;
    const starting = parts.open(part, startEmbedder(options, log, protect, name));
    open.set(key, starting);
    // An optional store tries again.
    starting
      .then((embedder) => {
        opened.push(embedder);
        return embedder.loaded;
      })
      .catch(() => open.delete(key));
    return starting;
  };
}
