import { expect, it, onTestFinished } from 'vitest';
import { embeddingsServer } from '../embedding/embeddings-server.ts';
import { dataFolder, runProgram, startGateway } from './gateway.ts';

it('[Decision 63] a gateway that was stopped says after its next start what each key has cost', async () => {
  const service = await embeddingsServer();
  onTestFinished(service.close);
  const env = {
    ...{ OMP_DATA_DIR: await dataFolder(), OMP_EMBEDDER: 'openai', OMP_EMBEDDING_MODEL: 'm' },
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
  const day = expect.stringMatching(/^\d{4}-\d\d-\d\d$/);
  expect(body).toMatchObject({
    counted_since: null,
    // The two starts, and the text.
    items: [
      { day, app: null, model: 'm', texts: 2, tokens: 2, requests: 2 },
      { day, app: 'editor', model: 'm', texts: 1, tokens: 1, requests: 1 },
    ],
    totals: { texts: 3, tokens: 3, requests: 3 },
  });
});
