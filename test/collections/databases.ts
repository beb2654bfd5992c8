import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProviderModule } from '#contract';
import chroma from '../../providers/collections/chroma.ts';
import lancedb from '../../providers/collections/lancedb.ts';
import libsql from '../../providers/collections/libsql.ts';
import milvus from '../../providers/collections/milvus.ts';
import qdrant from '../../providers/collections/qdrant.ts';
import weaviate from '../../providers/collections/weaviate.ts';
import { NO_CHROMA, openChroma } from '../chroma/start.ts';
import { NO_SQLD, openSqld } from '../libsql/server.ts';
import { NO_MILVUS, openMilvus } from '../milvus/server.ts';
import { NO_QDRANT_BIN, openQdrant, startRealQdrant } from '../qdrant/server.ts';
import { NO_WEAVIATE, openWeaviate } from '../weaviate/server.ts';

/** An empty database, until it is closed. */
interface OpenDatabase {
  /** Of its provider. */
  readonly options: object;
  /** The settings that say the same. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<unknown>;
  /** A real server: `kill` ends it as `kill -9` does, and `start` starts it again with what it has stored. */
  readonly server?: { kill(): Promise<void>; start(): Promise<void> };
}

export interface Database {
  readonly name: string;
  readonly provider: ProviderModule;
  /** Why it cannot be had here; empty: it can. */
  readonly absent: string;
  /** Why its server cannot be killed here; undefined: it has none, or can. */
  readonly unkillable?: string;
  open(): Promise<OpenDatabase>;
}

const inFolder = async (setting: string, option: string, value: (folder: string) => string): Promise<OpenDatabase> => {
  const folder = await mkdtemp(join(tmpdir(), 'omp-database-'));
  const place = value(folder);
  return { options: { [option]: place }, env: { [setting]: place }, close: () => rm(folder, { recursive: true }) };
};

interface Server {
  readonly url: string;
  close(): Promise<void>;
  kill?(): Promise<void>;
  start?(): Promise<void>;
}
const atServer = (setting: string, { url, close, kill, start }: Server): OpenDatabase => {
  return { options: { url }, env: { [setting]: url }, close, ...(kill && start && { server: { kill, start } }) };
};

/** Every vector database that the package has an adapter for. */
export const DATABASES: readonly Database[] = [
  {
    ...{ name: 'libSQL', provider: libsql, absent: '' },
    open: () => inFolder('OMP_LIBSQL_URL', 'url', (folder) => `file:${join(folder, 'memories.db')}`),
  },
  {
    ...{ name: 'libSQL server', provider: libsql, absent: NO_SQLD },
    open: async () => atServer('OMP_LIBSQL_URL', await openSqld()),
  },
  {
    ...{ name: 'LanceDB', provider: lancedb, absent: '' },
    open: () => inFolder('OMP_LANCEDB_FOLDER', 'folder', (folder) => folder),
  },
  {
    ...{ name: 'Qdrant', provider: qdrant, absent: '', unkillable: NO_QDRANT_BIN },
    open: async () => atServer('QDRANT_URL', NO_QDRANT_BIN === '' ? await startRealQdrant() : await openQdrant()),
  },
  {
    ...{ name: 'Chroma', provider: chroma, absent: NO_CHROMA },
    open: async () => atServer('OMP_CHROMA_URL', await openChroma()),
  },
  {
    ...{ name: 'Milvus Lite', provider: milvus, absent: NO_MILVUS },
    // Without its `kill`: Milvus Lite loses what it acknowledged when it starts again under load (docs/backends/milvus.md).
    open: async () => {
      const { url, close } = await openMilvus();
      return atServer('OMP_MILVUS_URL', { url, close });
    },
  },
  {
    ...{ name: 'Weaviate', provider: weaviate, absent: NO_WEAVIATE },
    open: async () => {
      const { grpc_url, ...server } = await openWeaviate();
      const { options, env, ...rest } = atServer('OMP_WEAVIATE_URL', server);
      return { ...rest, options: { ...options, grpc_url }, env: { ...env, OMP_WEAVIATE_GRPC_URL: grpc_url } };
    },
  },
];
