import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { expect, test } from 'vitest';
import { freshUser } from '../support/subject.ts';
import { type RunningGateway, startGateway, temporaryFolder } from './gateway.ts';

const STOPPING = /"msg":"stopping"/;

/** A POST that the gateway has begun to read; it waits for the rest of the body. */
async function openRequest({ url }: RunningGateway, body: string): Promise<ClientRequest> {
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    expect: '100-continue',
  };
  const post = request(`${url}/memories`, { method: 'POST', headers });
  post.flushHeaders();
  await once(post, 'continue');
  return post;
}

async function answerTo(post: ClientRequest): Promise<{ response: IncomingMessage; body: unknown }> {
  const [response] = (await once(post, 'response')) as [IncomingMessage];
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return { response, body: JSON.parse(text) };
}

test('SIGTERM finishes the running request, keeps what it added, and ends with status 0', async () => {
  const env = { OMP_DATA_DIR: temporaryFolder() };
  const gateway = await startGateway({ env });
  const body = JSON.stringify({ user_id: freshUser(), content: 'added while stopping' });
  const post = await openRequest(gateway, body);
  gateway.child.kill('SIGTERM');
  await gateway.output(STOPPING);
  post.end(body);
  const { response, body: memory } = await answerTo(post);
  expect(response.statusCode).toBe(201);
  // Else a client would send its next request on a connection that is about to be cut.
  expect(response.headers.connection).toBe('close');
  expect(await gateway.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
  await expect(fetch(`${gateway.url}/healthz`)).rejects.toThrow(TypeError);

  const { client } = await startGateway({ env });
  expect(await client.get((memory as { id: string }).id)).toMatchObject({ content: 'added while stopping' });
});

test.for(['SIGTERM', 'SIGINT'] as const)('a second %s ends the process at once', async (signal) => {
  // Longer than this test may take: only the second signal can end it.
  const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_TIMEOUT_MS: '600000' } });
  const post = await openRequest(gateway, '{}');
  const cut = once(post, 'error');
  gateway.child.kill(signal);
  await gateway.output(STOPPING);
  gateway.child.kill(signal);
  expect(await gateway.ended).toMatchObject({ status: null, signal });
  expect(await cut).toMatchObject([{ code: 'ECONNRESET' }]);
});

test('a request that does not come to an end is cut when the time to stop is over', async () => {
  const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_TIMEOUT_MS: '1' } });
  const post = await openRequest(gateway, '{}');
  const cut = once(post, 'error');
  expect(await gateway.stop()).toMatchObject({ status: 0, signal: null });
  expect(await cut).toMatchObject([{ code: 'ECONNRESET' }]);
});

test('an idle connection does not keep the process', async () => {
  const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_TIMEOUT_MS: '600000' } });
  // fetch keeps its connection for the next request.
  expect((await gateway.client.ask('/healthz')).status).toBe(200);
  expect(await gateway.stop()).toMatchObject({ status: 0, signal: null });
});
