import { expect, it, onTestFinished } from 'vitest';
import type { EmbeddingUsage } from '#contract';
import { NOTHING_USED, sumOf } from '#toolbox';
import { embeddingsServer } from '../embedding/embeddings-server.ts';
import { dataFolder, runProgram, startGateway } from './gateway.ts';

it('[Decision 63] a gateway that was stopped says after its next start what each key has cost', async () => {
  const service = await embeddingsServer();
  onTestFinished(service.close);
  const env = {
    ...{ OMP_DATA_DIR: await dataFolder(), OMP_SEARCH_MODE: 'vector' },
    ...{ OMP_EMBEDDER: 'openai', OMP_EMBEDDING_MODEL: 'm' },
    ...{ OPENAI_BASE_URL: service.base_url, OPENAI_API_KEY: 'none' },
  };
  const args = ['keys', 'create', 'editor', '--grant', '*:*', '--grant', 'admin:*'];
  const headers = { authorization: `Bearer ${(await runProgram({ args, env })).stdout.trim()}` };
  const first = await startGateway({ env });
  const added = await first.client.tell('POST', '/memories', { user_id: 'ana', content: 'tea' }, headers);
  expect(added.status, added.text).toBe(201);
  await first.stop();
  const second = await startGateway({ env });
  const { body } = await second.client.ask('/embedding-usage', {}, headers);
  expect(body).toMatchObject({ counted_since: null, totals: { texts: 3, tokens: 3, requests: 3 } });
  // Of all days: one may have ended meanwhile.
  const { items } = body as { items: EmbeddingUsage[] };
  const usedBy = (key: string | null) => items.filter(({ app }) => app === key).reduce(sumOf, NOTHING_USED);
  // The two starts, and the text.
  expect(usedBy(null)).toEqual({ texts: 2, tokens: 2, requests: 2 });
  expect(usedBy('editor')).toEqual({ texts: 1, tokens: 1, requests: 1 });
});
