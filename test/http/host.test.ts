import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loopbackHosts } from '../../src/http/admission.ts';
import { expectError } from '../support/expect-error.ts';
import { exchange } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const asking = (path: string, host: string) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);

describe('a gateway that knows its names', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({
      allowed_hosts: [...loopbackHosts, 'Memory.Example', 'proxied.example:8443', '2001:db8::7'],
    });
  });
  afterAll(() => server.close());

  it.for([
    'localhost',
    'localhost:8080',
    'LOCALHOST:1',
    '127.0.0.1:8080',
    '[::1]',
    '[::1]:8080',
    'memory.example',
    'MEMORY.example:443',
    'proxied.example:8443',
    '[2001:DB8::7]:8080',
  ])('[Decision 22] is reached as %s', async (host) => {
    expect((await exchange(server.port, asking('/capabilities', host))).status).toBe(200);
    expect((await exchange(server.port, asking('/memories?user_id=u', host))).status).toBe(200);
  });

  it.for([
    'evil.example',
    'evil.example:8080',
    'localhost.evil.example',
    'evil-localhost',
    'localhost.',
    'memory.example.evil.example',
    'xmemory.example',
    '127.0.0.2',
    '127.0.0.1.evil.example',
    '[::2]',
    '[2001:db8::7:1]',
    'proxied.example',
    'proxied.example:84430',
    'proxied.example:8444',
  ])(
    '[Decision 22] [SPEC Errors invalid_request] is not reached as %s, the way a page comes that rebinds its name',
    async (host) => {
      for (const path of ['/capabilities', '/openapi.json', '/docs', '/memories?user_id=u', '/nowhere']) {
        const { message } = expectError(await exchange(server.port, asking(path, host)), 'invalid_request');
        expect(message).toMatch(host.endsWith(':84430') ? /malformed/ : /OMP_ALLOWED_HOSTS/);
      }
    },
  );

  it('[Decision 22] two names are none', async () => {
    const bytes = Buffer.from('GET /memories?user_id=u HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n');
    expectError(await exchange(server.port, bytes), 'invalid_request');
  });

  it('[SPEC GET /healthz] answers a probe by whatever address', async () => {
    expect((await exchange(server.port, asking('/healthz', '10.1.2.3:8080'))).status).toBe(200);
  });
});

it('[Decision 22] without names to know, a gateway is reached by any', async () => {
  const server = await startServer();
  expect((await exchange(server.port, asking('/memories?user_id=u', 'any.example'))).status).toBe(200);
  await server.close();
});
