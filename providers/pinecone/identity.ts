import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { Call, EmbedderIdentity } from '#contract';
import type { Metadata, Service } from './client/client.ts';
import { indexUrl } from './client/transport.ts';
import type { Options } from './options.ts';

/** The record that describes an index of ours, in the namespace that is configured. No query of a user finds it. */
export const INDEX_RECORD = 'omp-index';
const LAYOUT_VERSION = 1;
const SECRET_BYTES = 32;

const derive = promisify<string, string, number, Buffer>(scrypt);

type Described = Pick<Options, 'api_key' | 'index_host' | 'namespace' | 'layout'>;

/**
 * Reads what the index is, or says so where it is still empty, and checks that this gateway fits. Answers the secret
 * that ids are made with, which stays the same for as long as the index is used. Throws as `readIndex` does.
 */
export async function adoptIndex(
  service: Service,
  options: Described,
  embedder: EmbedderIdentity,
  call: Call,
): Promise<Buffer> {
  const found = await readIndex(service, options, embedder, call);
  if (found) return found;
  const { namespace, layout } = options;
  const { model, dimensions } = embedder;
  const secret = await firstSecret(options);
  const metadata: Metadata = {
    layout_version: LAYOUT_VERSION,
    layout,
    embedding_model: model,
    dimensions,
    id_secret: secret.toString('hex'),
  };
  const values = Float32Array.from({ length: dimensions }, (_, index) => (index === 0 ? 1 : 0));
  await service.upsert(namespace, { id: INDEX_RECORD, values, metadata }, call);
  return secret;
}

/**
 * The secret of an index that this gateway fits; undefined where nothing says yet what the index is. Throws a plain
 * `Error` with both sides and the way out: vectors of two models are never compared, and ids of another layout would not
 * be found.
 */
export async function readIndex(
  service: Service,
  { namespace, layout }: Described,
  { model, dimensions }: EmbedderIdentity,
  call: Call,
): Promise<Buffer | undefined> {
  const found = (await service.fetch(namespace, [INDEX_RECORD], call)).get(INDEX_RECORD)?.metadata;
  if (!found) return undefined;
  const another = `or start with another OMP_PINECONE_NAMESPACE than "${namespace}"`;
  if (found.layout_version !== LAYOUT_VERSION) {
    throw new Error(
      `the memories in Pinecone are laid out in version ${found.layout_version}, this gateway knows ${LAYOUT_VERSION}; use the omp-gateway that stored them, ${another}`,
    );
  }
  if (found.embedding_model !== model || found.dimensions !== dimensions) {
    throw new Error(
      `the vectors in Pinecone were made by "${found.embedding_model}" (${found.dimensions} dimensions), the configured embedder is "${model}" (${dimensions}); ` +
        `configure that model again (OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS), ${another}`,
    );
  }
  if (found.layout !== layout) {
    throw new Error(
      `the memories in Pinecone are laid out as "${found.layout}", OMP_PINECONE_LAYOUT is "${layout}"; set it back, ${another}`,
    );
  }
  const secret = Buffer.from(String(found.id_secret), 'hex');
  if (secret.length !== SECRET_BYTES) {
    throw new Error(
      `the record "${INDEX_RECORD}" in the Pinecone namespace "${namespace}" lacks its id_secret; put it back, ${another}`,
    );
  }
  return secret;
}

/**
 * Made of what replicas have in common, so that those that start on an empty index at the same time write the same. From
 * then on the stored one counts, also when the key has been replaced.
 */
const firstSecret = ({ api_key, index_host, namespace }: Described): Promise<Buffer> =>
  derive(api_key, `omp-gateway:${new URL(indexUrl(index_host)).host}:${namespace}`, SECRET_BYTES);
