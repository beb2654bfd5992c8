import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { overHttp } from '../../src/mcp/over-http.ts';
import { get, remove, update } from '../../src/verbs/get-list-update-delete.ts';

const { signal } = new AbortController();

/** The memories of a user at a server, and its address. */
async function memoriesAt(answer: RequestListener, user_id = 'ana') {
  const server = createServer(answer);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, memories: overHttp({ url: `${url}/`, key: undefined, user_id, timeout_ms: 60_000 }) };
}

it.each(['', '.', '..'])('[Decision 45] a tool over HTTP asks for nothing else than memories: id "%s"', async (id) => {
  const asked: (string | undefined)[] = [];
  const { memories } = await memoriesAt(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.end('{}');
  });
  for (const verb of [get, update, remove] as const) {
    await expect(memories.run(verb as typeof get, { id, patch: {} }, signal)).rejects.toMatchObject({
      code: 'not_found',
    });
  }
  expect(asked).toEqual([]);
});

it('[Decision 45] a tool over HTTP sends the bytes of its user id', async () => {
  const users: (string | undefined)[] = [];
  const { memories } = await memoriesAt(({ headers }, response) => {
    users.push(Buffer.from(`${headers['x-user-id']}`, 'latin1').toString());
    response.end('{}');
  }, 'Zoë 記');
  await memories.run(get, { id: 'm1' }, signal);
  expect(users).toEqual(['Zoë 記']);
});

it.each([
  [404, '{"error":{"code":"not_found","message":"no such memory"}}', 'not_found', 'no such memory'],
  [502, '<html>', 'provider_error', 'URL answered 502; is it a gateway?'],
  [307, '', 'provider_error', 'URL answered 307; is it a gateway?'],
])('[Decision 45] a tool over HTTP explains the answer %i %s', async (status, body, code, message) => {
  const { url, memories } = await memoriesAt((request, response) => {
    // Followed, the redirect would end in an answer of success.
    if (request.url === '/elsewhere') response.end('{}');
    else response.writeHead(status, status === 307 ? { location: '/elsewhere' } : {}).end(body);
  });
  await expect(memories.run(get, { id: 'm1' }, signal)).rejects.toMatchObject({
    code,
    message: message.replace('URL', url),
  });
});
