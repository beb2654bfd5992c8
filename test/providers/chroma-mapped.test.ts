import { randomUUID } from 'node:crypto';
import { ChromaClient } from 'chromadb';
import { afterAll, describe } from 'vitest';
import chroma from '../../providers/collections/chroma.ts';
import { type Chroma, NO_CHROMA, openChroma } from '../chroma/start.ts';
import { providerTests } from '../conformance/provider-tests.ts';

const LABEL = `Chroma, a collection of others${NO_CHROMA && ` (${NO_CHROMA})`}`;
const FIELDS = { scope_field: 'folder', created_field: 'written', updated_field: 'changed', tags_field: 'labels' };

describe.skipIf(NO_CHROMA !== '')(LABEL, () => {
  let server: Promise<Chroma> | undefined;
  afterAll(async () => (await server)?.close());
  const open = async () => {
    server ??= openChroma();
    const { url } = await server;
    const { hostname: host, port } = new URL(url);
    const collection = randomUUID();
    const client = new ChromaClient({ host, port: Number(port), ssl: false });
    await client.createCollection({ name: collection, embeddingFunction: null });
    return {
      ...{ mode: 'vector' as const, ids: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/ },
      options: { url, collection, preset: 'langchain', writable: true, ...FIELDS },
      without: ['source', 'confidence', 'valid_from', 'valid_to', 'extensions'],
    };
  };
  providerTests(chroma, open, LABEL);
});
