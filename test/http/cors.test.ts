import { afterEach, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import type { Reply } from '../support/client.ts';
import { closedTo } from '../support/closed.ts';
import { expectError } from '../support/expect-error.ts';
import { type RunningServer, type ServerOptions, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

const ORIGIN = 'https://app.example';
const HEADERS = [
  'authorization',
  'content-type',
  'idempotency-key',
  'x-api-key',
  'x-consistency-token',
  'x-request-id',
  'x-user-id',
];
const EXPOSED = [
  'x-request-id',
  'x-consistency',
  'x-consistency-token',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
];

const corsHeaders = ({ headers }: Reply) => [...headers.keys()].filter((name) => name.startsWith('access-control-'));
const listed = ({ headers }: Reply, name: string) => headers.get(`access-control-${name}`)?.toLowerCase().split(/, ?/);

describe('calls of web pages', () => {
  let server: RunningServer | undefined;
  afterEach(() => server?.close());
  const start = async (options: ServerOptions): Promise<RunningServer> => {
    server = await startServer(options);
    return server;
  };
  const preflight = ({ client }: RunningServer, path: string, origin = ORIGIN) =>
    client.raw(path, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': HEADERS.join(','),
      },
    });

  it('[Decision 22] are not let in unless configured', async () => {
    const running = await start({});
    const reply = await preflight(running, '/memories');
    expectError(reply, 'not_found');
    const got = await running.client.ask('/capabilities', {}, { origin: ORIGIN });
    expect([...corsHeaders(reply), ...corsHeaders(got)]).toEqual([]);
  });

  it('[Decision 22] a preflight is answered without a key, without the backend, with what the protocol needs', async () => {
    const asked: string[] = [];
    const watched = (all: Provider): Provider => {
      const provider = all as Required<Provider>;
      return {
        ...provider,
        ping: (call) => {
          asked.push('ping');
          return provider.ping(call);
        },
        get: (ref, call) => {
          asked.push('get');
          return provider.get(ref, call);
        },
        add: (input, vector, call) => {
          asked.push('add');
          return provider.add(input, vector, call);
        },
      };
    };
    const { authenticator } = await closedTo('only');
    const running = await start({ cors_origins: [ORIGIN], authenticator, alter: watched });
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

  it('[Decision 22] answers and errors alike may be read by the origins named, and by no other', async () => {
    const { authenticator, keys } = await closedTo('only');
    const { client } = await start({ cors_origins: ['https://other.example', ORIGIN], authenticator });
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
    for (const origin of [
      'https://evil.example',
      'http://app.example',
      'https://app.example:444',
      'null',
      `${ORIGIN}.evil`,
    ]) {
      for (const reply of await replies(origin)) {
        expect(reply.headers.get('access-control-allow-origin'), origin).toBeNull();
      }
      expect(
        (await preflight(server as RunningServer, '/memories', origin)).headers.get('access-control-allow-origin'),
      ).toBeNull();
    }
  });

  it('[Decision 22] * lets in every origin, still without cookies', async () => {
    const running = await start({ cors_origins: ['*'] });
    for (const reply of [
      await preflight(running, '/memories'),
      await running.client.ask('/memories', {}, { origin: ORIGIN }),
    ]) {
      expect(reply.headers.get('access-control-allow-origin')).toBe('*');
      expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
    }
  });

  it('[Decision 22] a refused host is told readably', async () => {
    const { client } = await start({ cors_origins: [ORIGIN], allowed_hosts: ['elsewhere.example'] });
    const reply = await client.ask('/memories', { user_id: 'u' }, { origin: ORIGIN });
    expectError(reply, 'invalid_request');
    expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });
});
