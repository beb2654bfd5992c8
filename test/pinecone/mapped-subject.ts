import { defineProvider } from '#contract';
import { toUnit } from '#ranking';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { openMappedIndex } from '../../providers/pinecone/mapped/mapped-index.ts';
import type { Options } from '../../providers/pinecone/pinecone-options.ts';
import { loadConfig } from '../../src/config/load.ts';
import { documentedEnvironment } from '../mapped/documented.ts';
import { post } from '../pinecone-server/plain.ts';
import type { Pinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, contextOf } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { openSubject, type Subject, type SubjectOptions } from '../support/subject.ts';

/** A record as the other application writes it; its vector is that of `text`. */
export interface ForeignRecord {
  readonly id: string;
  readonly text: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

const embedder = hashingEmbedder();

/** A text of whose embedding nothing is left. */
export async function silentText(): Promise<string> {
  for (let at = 0; ; at++) {
    const [vector] = await embedder.embed([String(at)], 'document', call);
    if (vector?.every((component) => component === 0)) return String(at);
  }
}

/** Writes past the gateway, so many at once that they stay below 2 MB. */
export async function fill(
  server: Pinecone,
  namespace: string,
  records: readonly ForeignRecord[],
  atOnce = 500,
): Promise<void> {
  for (let start = 0; start < records.length; start += atOnce) {
    const chunk = records.slice(start, start + atOnce);
    const embedded = await embedder.embed(
      chunk.map(({ text }) => text),
      'document',
      call,
    );
    const vectors = chunk.map(({ id, metadata }, place) => ({
      id,
      values: [...toUnit(embedded[place] as Float32Array)],
      metadata,
    }));
    const { status, body } = await post(server, '/vectors/upsert', { vectors, namespace });
    if (status !== 200) throw new Error(JSON.stringify(body));
  }
}

/** Changes past the gateway. */
export const change = (server: Pinecone, namespace: string, id: string, setMetadata: object) =>
  post(server, '/vectors/update', { id, setMetadata, namespace });

/** The whole gateway on such an index. */
export const openMappedSubject = (
  { url }: Pick<Pinecone, 'url'>,
  options: object,
  more: Partial<SubjectOptions> = {},
): Promise<Subject> =>
  openSubject({
    provider: 'pinecone',
    options: { api_key: 'key-of-the-tests', index_host: url, ...options },
    mode: 'vector',
    ...more,
  });

/** What one gateway opens on a service that does not behave as Pinecone's. */
export async function openMappedStore(service: Service, options: Options) {
  const context = contextOf({ embedder, ranking: { mode: 'vector', keyword_weight: 0 } });
  const own = { embedder, log: context.log };
  const open = () => openMappedIndex(service, options, own);
  return storeOf(await defineProvider({ specVersion: 2, name: 'pinecone', open }).open({}, context), embedder);
}

/** The settings of `docs/integrations/pinecone-<preset>.md`, through the gateway's own loader. */
export const documentedOptions = (preset: string) =>
  loadConfig({ env: documentedEnvironment(`pinecone-${preset}`) }).config.pinecone;
