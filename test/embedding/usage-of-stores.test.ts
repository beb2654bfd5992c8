import { expect, it, onTestFinished } from 'vitest';
import { UNPROTECTED } from '../../src/core/telemetry.ts';
import { openStores } from '../../src/open-stores.ts';
import { type OpenParts, openParts } from '../../src/shutdown.ts';
import { load } from '../config/sources.ts';
import { recordingLog } from '../support/subject.ts';
import { embeddingsServer } from './embeddings-server.ts';

it('[Decision 63] the root store closes after all other stores, whose embedders it keeps the usage of', async () => {
  const service = await embeddingsServer();
  onTestFinished(service.close);
  const { config } = load({
    env: {
      ...{ OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'vector', OMP_EMBEDDER: 'openai', OMP_EMBEDDING_MODEL: 'm' },
      ...{ OPENAI_BASE_URL: service.base_url, OPENAI_API_KEY: 'none' },
      OMP_STORES: JSON.stringify({ notes: { mount: 'notes', provider: 'memory', search: { mode: 'keyword' } } }),
    },
  });
  const log = recordingLog();
  const parts = openParts(log);
  const closed: string[] = [];
  const noting: OpenParts = {
    ...parts,
    open: (part, opening) => {
      const close = async () => void closed.push(part);
      return parts.open(
        part,
        opening.then((one) => Object.assign(one, { close })),
      );
    },
  };
  await openStores(config, { protect: () => UNPROTECTED, parts: noting, log });
  await parts.close();
  expect(closed).toEqual(['stores.notes', 'provider', 'embedder']);
});
