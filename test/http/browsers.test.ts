import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { loopbackHosts } from '../../src/http/admission.ts';
import type { Reply } from '../support/client.ts';
import { closedTo } from '../support/closed.ts';
import { expectError } from '../support/expect-error.ts';
import { exchange } from '../support/raw-http.ts';
import { type RunningServer, serverForTest, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

const ORIGIN = 'https://app.example';
const HEADERS = 'authorization content-type idempotency-key x-api-key x-consistency-token x-request-id x-user-id'.split(
  ' ',
);
const EXPOSED =
  'x-request-id x-ignored-fields x-consistency x-consistency-token ratelimit ratelimit-policy retry-after'.split(' ');

const corsHeaders = ({ headers }: Reply) => [...headers.keys()].filter((name) => name.startsWith('access-control-'));
const listed = ({ headers }: Reply, name: string) => headers.get(`access-control-${name}`)?.toLowerCase().split(/, ?/);

describe('CORS', () => {
  const preflight = ({ client }: RunningServer, path: string, origin = ORIGIN) =>
    client.raw(path, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': HEADERS.join(','),
      },
    });

  it('[Decision 22] is off by default', async () => {
    const running = await serverForTest({});
    const reply = await preflight(running, '/memories');
    expectError(reply, 'not_found');
    const got = await running.client.ask('/capabilities', {}, { origin: ORIGIN });
    expect([...corsHeaders(reply), ...corsHeaders(got)]).toEqual([]);
  });

  it('[Decision 22] answers a preflight without a key and without the backend', async () => {
    const asked: string[] = [];
    const watched = (provider: Provider): Provider => ({
      ...provider,
      ping: (call) => {
        asked.push('ping');
        return provider.ping(call);
      },
    });
    const { authenticator } = await closedTo('only');
    const running = await serverForTest({ cors_origins: [ORIGIN], authenticator, alter: watched });
    for (const path of ['/healthz', '/memories', '/memories/mem_x', '/memories/search', '/context', '/audit']) {
      const reply = await preflight(running, path);
      expect(reply).toMatchObject({ status: 204, text: '' });
      expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
      expect(reply.headers.get('vary')).toMatch(/Origin/);
      expect(listed(reply, 'allow-methods')).toEqual(expect.arrayContaining(['get', 'post', 'patch', 'delete']));
      expect(listed(reply, 'allow-headers')).toEqual(expect.arrayContaining(HEADERS));
      expect(listed(reply, 'expose-headers')).toEqual(expect.arrayContaining(EXPOSED));
    }
    expect(asked).toEqual([]);
    await running.client.ask('/healthz');
    expect(asked).toEqual(['ping']);
  });

  it('[Decision 22] lets only the configured origins read responses and errors', async () => {
    const { authenticator, keys } = await closedTo('only');
    const running = await serverForTest({ cors_origins: ['https://other.example', ORIGIN], authenticator });
    const { client } = running;
    const replies = async (origin: string) => {
      const headers = { origin, authorization: `Bearer ${keys.only}` };
      return [
        await client.tell('POST', '/memories', { content: 'x', user_id: freshUser() }, headers),
        await client.ask('/memories/mem_x', {}, headers),
        await client.ask('/memories', {}, headers),
        await client.ask('/memories', { user_id: 'u' }, { origin }),
        await client.ask('/healthz', {}, { origin }),
      ];
    };
    const own = await replies(ORIGIN);
    expect(own.map(({ status }) => status)).toEqual([201, 404, 400, 401, 200]);
    for (const reply of own) {
      expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
      expect(listed(reply, 'expose-headers')).toEqual(expect.arrayContaining(EXPOSED));
      expect(reply.headers.get('vary')).toMatch(/Origin/);
    }
    const others = ['https://evil.example', 'http://app.example', 'https://app.example:444', 'null', `${ORIGIN}.evil`];
    for (const origin of others) {
      for (const reply of await replies(origin)) {
        expect(reply.headers.get('access-control-allow-origin'), origin).toBeNull();
      }
      expect((await preflight(running, '/memories', origin)).headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  it('[Decision 22] allows every origin with *, without cookies', async () => {
    const running = await serverForTest({ cors_origins: ['*'] });
    for (const reply of [
      await preflight(running, '/memories'),
      await running.client.ask('/memories', {}, { origin: ORIGIN }),
    ]) {
      expect(reply.headers.get('access-control-allow-origin')).toBe('*');
      expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
    }
  });

  it('[Decision 22] lets pages read the error about a Host', async () => {
    const { client } = await serverForTest({ cors_origins: [ORIGIN], allowed_hosts: ['elsewhere.example'] });
    const reply = await client.ask('/memories', { user_id: 'u' }, { origin: ORIGIN });
    expectError(reply, 'invalid_request');
    expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });
});

describe('a page of another site', () => {
  /** The headers that browsers send. */
  const IMAGE = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' };
  const OF_OTHERS = {
    'an image': IMAGE,
    'an image of another port': { ...IMAGE, 'sec-fetch-site': 'same-site' },
    'a frame': { ...IMAGE, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    'a script without CORS': { ...IMAGE, 'sec-fetch-dest': 'empty' },
    'a script of an unknown origin': { ...IMAGE, 'sec-fetch-mode': 'cors', origin: 'https://evil.example' },
  };
  const PATHS = ['/memories?user_id=u', '/export', '/audit?user_id=u', '/mcp', '/nowhere'];

  it.for(Object.entries(OF_OTHERS))('[Decision 22] cannot make the gateway work: %s', async ([, headers]) => {
    for (const cors_origins of [[], [ORIGIN]]) {
      const { client } = await serverForTest({ cors_origins, mcp: { enabled: 'on' } });
      for (const path of PATHS) {
        const { message } = expectError(await client.ask(path, {}, headers), 'scope_denied');
        expect(message).toMatch(/OMP_CORS_ORIGINS/);
      }
    }
  });

  it('[Decision 22] may lead to the pages of this gateway, which may call it, and so may listed origins', async () => {
    const { client } = await serverForTest({ cors_origins: [ORIGIN], console: 'on' });
    const link = { ...IMAGE, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    for (const path of ['/docs', '/console/', '/capabilities', '/healthz'])
      expect((await client.ask(path, {}, link)).status, path).toBe(200);
    const list = async (headers: Record<string, string>) =>
      (await client.ask('/memories', { user_id: 'u' }, headers)).status;
    expect(await list({ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' })).toBe(200);
    expect(await list({ 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' })).toBe(200);
    expect(await list({ ...IMAGE, 'sec-fetch-mode': 'cors', origin: ORIGIN })).toBe(200);
    // A proxy may have answered its preflight.
    expect(
      await list({ ...IMAGE, 'sec-fetch-mode': 'cors', 'x-api-key': 'any', origin: 'https://other.example' }),
    ).toBe(200);
    const { client: open } = await serverForTest({ cors_origins: ['*'] });
    expect((await open.ask('/memories', { user_id: 'u' }, IMAGE)).status).toBe(200);
  });
});

const asking = (path: string, host: string) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);

describe('allowed hosts', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({
      allowed_hosts: [...loopbackHosts, 'Memory.Example', 'proxied.example:8443', '2001:db8::7'],
    });
  });
  afterAll(() => server.close());

  const KNOWN = 'localhost localhost:8080 LOCALHOST:1 127.0.0.1:8080 [::1] [::1]:8080 memory.example';
  const NAMED = 'MEMORY.example:443 proxied.example:8443 [2001:DB8::7]:8080';
  it.for([KNOWN, NAMED].join(' ').split(' '))('[Decision 22] accept %s', async (host) => {
    expect((await exchange(server.port, asking('/capabilities', host))).status).toBe(200);
    expect((await exchange(server.port, asking('/memories?user_id=u', host))).status).toBe(200);
  });

  const EVIL = 'evil.example evil.example:8080 localhost.evil.example evil-localhost localhost. xmemory.example';
  const ALIKE = 'memory.example.evil.example 127.0.0.2 127.0.0.1.evil.example [::2] [2001:db8::7:1] proxied.example';
  const PORTS = 'proxied.example:84430 proxied.example:8444';
  it.for([EVIL, ALIKE, PORTS].join(' ').split(' '))(
    '[Decision 22] [SPEC Errors invalid_request] reject %s',
    async (host) => {
      for (const path of ['/capabilities', '/openapi.json', '/docs', '/memories?user_id=u', '/nowhere']) {
        const { message } = expectError(await exchange(server.port, asking(path, host)), 'invalid_request');
        expect(message).toMatch(host.endsWith(':84430') ? /malformed/ : /OMP_ALLOWED_HOSTS/);
      }
    },
  );

  it('[Decision 22] reject two Host headers', async () => {
    const bytes = Buffer.from('GET /memories?user_id=u HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n');
    expectError(await exchange(server.port, bytes), 'invalid_request');
  });

  it('[SPEC GET /healthz] accept probes with any Host', async () => {
    expect((await exchange(server.port, asking('/healthz', '10.1.2.3:8080'))).status).toBe(200);
  });
});

it('[Decision 22] without allowed hosts, any Host is accepted', async () => {
  const { port } = await serverForTest();
  expect((await exchange(port, asking('/memories?user_id=u', 'any.example'))).status).toBe(200);
});
