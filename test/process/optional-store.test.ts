import { expect, it, onTestFinished } from 'vitest';
import { startPinecone } from '../pinecone-server/start.ts';
import { eventually } from '../support/eventually.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { serveHere } from './gateway.ts';

it('[Decision 48] [Decision 49] the gateway starts without an optional store, keeps trying to open it, and names it everywhere', async () => {
  const pinecone = await startPinecone({ dimension: 512 });
  onTestFinished(pinecone.close);
  const proxy = await startTcpProxy(pinecone.url);
  await proxy.down();
  const crm = {
    mount: 'crm',
    required: false,
    provider: 'pinecone',
    pinecone: { api_key: 'test', index_host: proxy.through(pinecone.url) },
  };
  const { client, log } = await serveHere({
    OMP_SEARCH_MODE: 'hybrid',
    OMP_METRICS_PORT: '0',
    OMP_STORES: JSON.stringify({ crm }),
  });
  expect(log.lines).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      message: expect.stringMatching(/^stores\.crm: .*the gateway starts without it and keeps trying$/),
    }),
  );
  const { ask, tell, list, search } = client;
  const memory = { user_id: 'ana', content: 'Acme renews in May', scope: 'crm/acme' };
  expect((await ask('/readyz')).status).toBe(200);
  expect((await ask('/memories', { user_id: 'ana' })).headers.get('x-partial')).toBe('crm');
  expect((await tell('POST', '/memories', memory)).body).toMatchObject({ error: { provider: 'crm' } });

  await proxy.up();
  await eventually(async () =>
    expect((await ask('/memories', { user_id: 'ana' })).headers.get('x-partial')).toBeNull(),
  );
  expect((await tell('POST', '/memories', memory)).status).toBe(201);
  expect((await list({ user_id: 'ana' })).items).toMatchObject([memory]);
  expect((await search({ user_id: 'ana', q: 'Acme renews in May' }))[0]).toMatchObject({ memory, score: 1 });
  const { text } = await ask('/metrics');
  expect(text).toContain('omp_backend_request_duration_seconds_count{provider="crm",operation="add",outcome="ok"} 1');
  expect(text).toMatch(/omp_circuit_breaker_state\{dependency="crm",state="closed"\} 1/);
  // Both stores have the bundled model, so there is one of it.
  expect(text.match(/omp_circuit_breaker_state\{dependency="[^"]*local",state="closed"\}/g)).toHaveLength(1);
});
