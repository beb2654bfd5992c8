import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MaintenanceContext, Provider, ProviderModule } from '#contract';
import { type Chroma, NO_CHROMA as NO_SERVER, startChroma } from '../../examples/provider-chroma/test/chroma-server.ts';
import { RECORDED, recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';

const EXAMPLE = new URL('../../examples/provider-chroma/', import.meta.url);

/** Path of the built provider, as an operator names it. */
export const BUILT = new URL('dist/index.js', EXAMPLE).pathname;

/** Why nothing can be tested; empty: it can. */
export const NO_CHROMA = existsSync(BUILT) ? NO_SERVER : 'the example is not installed: bash test/chroma/install.sh';

/** A server with an empty folder. */
export async function openChroma(): Promise<Chroma & { readonly folder: string; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'omp-chroma-'));
  const chroma = await startChroma(folder);
  return {
    ...chroma,
    folder,
    async close() {
      await chroma.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// Neither is in the program of the compiler: they are not installed everywhere.
export const load = async <Module>(path: string): Promise<Module> => await import(new URL(path, EXAMPLE).href);

export const chromaModule = async (): Promise<ProviderModule> =>
  (await load<{ default: ProviderModule }>('dist/index.js')).default;

/** The part of Chroma's client that the tests use. */
export interface ChromaCollection {
  add(records: object): Promise<void>;
  get(query: object): Promise<unknown>;
  query(query: object): Promise<unknown>;
  update(records: object): Promise<void>;
  count(): Promise<number>;
}

export interface ChromaClient {
  createCollection(options: object): Promise<ChromaCollection>;
  getCollection(options: { readonly name: string }): Promise<ChromaCollection>;
  deleteCollection(options: { readonly name: string }): Promise<void>;
}

export async function chromaClient(url: string): Promise<ChromaClient> {
  const { ChromaClient } = await load<{ ChromaClient: new (options: object) => ChromaClient }>(
    'node_modules/chromadb/dist/chromadb.mjs',
  );
  const { hostname: host, port } = new URL(url);
  return new ChromaClient({ host, port: Number(port) });
}

/** Opens the provider as the gateway does. */
export async function openChromaProvider(
  options: object,
  context: Partial<MaintenanceContext> = {},
): Promise<Required<Provider>> {
  const provider = await (await chromaModule()).open(options, {
    embedder: hashingEmbedder(),
    ranking: { mode: 'vector', keyword_weight: 0 },
    audit: RECORDED,
    data_dir: tmpdir(),
    log: recordingLog(),
    ...context,
  });
  return provider as Required<Provider>;
}
