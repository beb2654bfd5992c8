import { join, resolve } from 'node:path';
import type { z } from 'zod';
import { resolveMapping } from '../../providers/postgres/mapped/mapping.ts';
import { check } from './check.ts';
import { dropIdle, unmet } from './conditions.ts';
import { collect, parseYaml } from './config-file.ts';
import type { Input, Reading } from './mistakes.ts';
import { SETTINGS, STORE_SETTINGS, settingFor } from './schema-reader.ts';
import { type Config, type configSchema, type StoreConfig, storeSchema } from './settings.ts';

/*
 * Reads `stores`. Which settings a store may have is `storeSchema` in settings.ts.
 */

/** One store as it is written. */
export interface ReadStore {
  readonly name: string;
  /** Such as `stores.crm in gateway.yaml`; begins each mistake about the store. */
  readonly title: string;
  /** Undefined: a mistake hides them. */
  readonly settings: (z.output<typeof storeSchema> & { readonly mount: string }) | undefined;
  /** Whether the store names its own folder. */
  readonly hasFolder: boolean;
}

/** The stores that `stores` or OMP_STORES gives. Takes the setting out of `inputs`, and adds every mistake. */
export function readStores(inputs: Map<string, Input>, reading: Reading): ReadStore[] {
  const input = inputs.get('stores');
  inputs.delete('stores');
  if (input?.value === undefined) return [];
  const { name, value, origin } = input;
  const count = reading.mistakes.length;
  // As JSON, a name that is given twice would win silently; YAML reports it.
  const node = typeof value === 'string' ? parseYaml(value, name, reading.mistakes) : value;
  if (typeof node === 'object' && node !== null && !Array.isArray(node)) {
    const where = origin === 'file' ? name.slice('stores in '.length) : name;
    return Object.entries(node).map((entry) => readStore(entry, where, reading));
  }
  if (reading.mistakes.length === count) reading.mistakes.push(`${name} must be ${settingFor('stores')?.allowed}`);
  return [];
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

function readStore([name, node]: [string, unknown], where: string, reading: Reading): ReadStore {
  const title = `stores.${name} in ${where}`;
  const mistakes: string[] = [];
  const inputs = new Map<string, Input>();
  if (!NAME.test(name))
    mistakes.push('a name is a lower-case letter, then at most 31 lower-case letters, digits and hyphens');
  collect(node, '', { ...reading, mistakes, inputs, known: STORE_SETTINGS });
  dropIdle(inputs, mistakes);
  if (!inputs.has('mount'))
    mistakes.push('mount is required: the scope at which the store appears, such as docs/handbook');
  mistakes.push(...unmet(inputs, withExample));
  const settings = check(storeSchema, inputs, mistakes, STORE_SETTINGS);
  reading.mistakes.push(...mistakes.map((mistake) => `${title}: ${mistake}`));
  const { mount } = settings ?? {};
  return {
    name,
    title,
    settings: settings && mount !== undefined ? { ...settings, mount } : undefined,
    hasFolder: inputs.has('data_dir'),
  };
}

/** The name of the root store where a store is named. */
export const ROOT = 'root';

/** The configuration of one store alone. Throws if there is none of that name. */
function configOfStore(config: Config, name: string): Config {
  // The rules of retention are in the scopes of all stores together.
  if (name === ROOT) return { ...config, retention: [], stores: [] };
  const store = config.stores.find((each) => each.name === name);
  // The log of the root store has the changes of a mounted store: alone, it has no feed of them.
  if (store !== undefined) return { ...store.config, retention: [], audit: { ...store.config.audit, record: 'off' } };
  const names = [ROOT, ...config.stores.map((each) => each.name)];
  throw new Error(`there is no such store; there are ${names.join(', ')}`);
}

const KEYS = new Map(SETTINGS.flatMap(({ env, key }) => (STORE_SETTINGS.has(key) ? [[env, key]] : [])));

/** The message with the settings of a mounted store, where it names variables: those are of the root store. */
export const withKeys = (message: string): string => message.replace(/\w+/g, (word) => KEYS.get(word) ?? word);

/** A message about a store, with its name unless it is the root store. */
const inStore = (name: string, message: string): string =>
  name === ROOT ? message : `stores.${name}: ${withKeys(message)}`;

/** The error about a store, with its name. */
export const errorInStore = (name: string, error: unknown): Error =>
  error instanceof Error
    ? new Error(inStore(name, error.message), error.cause === undefined ? {} : { cause: error.cause })
    : new Error(inStore(name, String(error)));

/** Runs work on the configuration of one store alone; its failure names the store. Without a name: the root store. */
export async function withStore<Result>(
  config: Config,
  name: string | undefined,
  work: (config: Config) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(configOfStore(config, name ?? ROOT));
  } catch (error) {
    throw name === undefined || name === ROOT ? error : errorInStore(name, error);
  }
}

/** A store takes nothing from the environment by itself. */
function withExample(key: string): string {
  const { example } = settingFor(key) ?? {};
  return example === undefined ? key : `${key} (such as ${example})`;
}

/**
 * The stores of a gateway with this root store; undefined: a mistake hides it. Adds the mistakes between them: names and mounts
 * that exclude each other, and the same memories mounted twice.
 */
export function storesBeside(
  root: z.output<typeof configSchema> | undefined,
  stores: readonly ReadStore[],
  mistakes: string[],
): StoreConfig[] {
  const places = new Map<string, string>();
  const rootPlace = root && placeOf(root);
  if (rootPlace !== undefined) places.set(rootPlace.key, 'the root store');
  const found: StoreConfig[] = [];
  for (const { name, title, settings, hasFolder } of stores) {
    if (name === ROOT || name === root?.provider)
      mistakes.push(`${title}: ${name} names the root store in commands, errors and metrics; choose another name`);
    if (settings === undefined) continue;
    const { mount, required, weight, ...own } = settings;
    for (const other of found) {
      const relation = relationOf(mount, other.mount);
      if (relation !== undefined)
        mistakes.push(
          `${title}: mount ${mount} ${relation} ${other.mount}, the mount of stores.${other.name}; mount them beside each other`,
        );
    }
    const data_dir = hasFolder ? own.data_dir : join(root?.data_dir ?? '', 'stores', name);
    // A store takes no setting of a store from the root.
    const ofGateway = Object.entries(root ?? {}).filter(([key]) => !(key in storeSchema.shape));
    const config = { ...Object.fromEntries(ofGateway), ...own, data_dir, stores: [] } as unknown as Config;
    const place = placeOf(config);
    const other = place && places.get(place.key);
    if (place !== undefined && other !== undefined)
      mistakes.push(`${title}: it has the ${place.what} of ${other}, so each memory would appear twice; name another`);
    else if (place !== undefined) places.set(place.key, `stores.${name}`);
    found.push({ name, mount, required, weight, config });
  }
  return found;
}

function relationOf(mount: string, other: string): string | undefined {
  if (mount === other) return 'is the same as';
  if (mount.startsWith(`${other}/`)) return 'lies inside';
  return other.startsWith(`${mount}/`) ? 'contains' : undefined;
}

/** Where a store keeps its memories, as far as its settings tell; undefined: no other store can have that place. */
function placeOf({
  provider,
  postgres,
  mapping,
  pinecone,
  lancedb,
  libsql,
  milvus,
  qdrant,
  chroma,
  weaviate,
  data_dir,
}: Omit<Config, 'stores'>) {
  if (provider === 'lancedb') {
    const folder = resolve(lancedb.folder ?? join(data_dir, 'lancedb'));
    return { what: 'folder and table', key: JSON.stringify([folder, lancedb.table]) };
  }
  if (provider === 'libsql')
    return { what: 'database and table', key: JSON.stringify([libsql.url ?? resolve(data_dir), libsql.table]) };
  if (provider === 'milvus') return { what: 'collection', key: JSON.stringify([milvus.url, milvus.collection]) };
  if (provider === 'weaviate')
    return { what: 'server and collection', key: JSON.stringify([new URL(weaviate.url).host, weaviate.collection]) };
  if (provider === 'pinecone') {
    const host = pinecone.index_host
      ?.replace(/^https?:\/\//i, '')
      .split('/')[0]
      ?.toLowerCase();
    return { what: 'index and namespace', key: JSON.stringify([host, pinecone.namespace]) };
  }
  if (provider === 'qdrant') {
    return { what: 'server and collection', key: JSON.stringify([new URL(qdrant.url).host, qdrant.collection]) };
  }
  if (provider === 'chroma') {
    const { url, tenant, database, collection } = chroma;
    return { what: 'server and collection', key: JSON.stringify([new URL(url).host, tenant, database, collection]) };
  }
  if (provider !== 'postgres') return undefined;
  if (postgres.url === undefined) return { what: 'data folder', key: resolve(data_dir) };
  const server = serverOf(postgres.url);
  const { preset, ...rest } = mapping;
  if (preset === undefined) return { what: 'database and schema', key: JSON.stringify([...server, postgres.schema]) };
  const mapped = resolveMapping({ preset, ...rest }, []);
  if (mapped === undefined) return undefined;
  const { schema, table, collection, vectors, user_pattern } = mapped;
  const key = JSON.stringify([...server, schema, table, collection?.value, vectors?.which?.value, user_pattern]);
  return { what: 'table', key };
}

/** Host, port and database of a connection string, without who connects and how. */
function serverOf(url: string): string[] {
  if (!URL.canParse(url)) return [url];
  const { hostname, port, pathname, searchParams } = new URL(url);
  return [(searchParams.get('host') ?? hostname).toLowerCase(), port || searchParams.get('port') || '5432', pathname];
}
