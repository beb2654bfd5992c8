import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Authenticator } from '../../src/core/principal.ts';
import { createApp } from '../../src/http/app.ts';
import { closedTo } from '../support/closed.ts';
import { expectError } from '../support/expect-error.ts';
import { exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { APP_LIMITS, freshUser, gateOn, openSubject, recordingLog, type Subject } from '../support/subject.ts';

/** Everything that is answered without a key (SPEC, Authentication 4; Decision 13). */
const PUBLIC = [
  'GET /healthz',
  'GET /livez',
  'GET /readyz',
  'GET /capabilities',
  'GET /openapi.json',
  'GET /docs',
  'GET /docs/start.js',
  'GET /docs/:asset',
];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];

/** Every method on every path that the app has something for, middleware included, and on one that it has not. */
const everything = (app: Pick<Hono, 'routes'>): string[] => {
  const paths = new Set([...app.routes.map(({ path }) => path), '/nowhere']);
  return [...paths].flatMap((path) => METHODS.map((method) => `${method} ${path}`));
};

/** What the app answers otherwise than with 401 to somebody without a key. */
const unguarded = async (app: Hono): Promise<string[]> => {
  const found: string[] = [];
  for (const route of everything(app)) {
    const [method, path = ''] = route.split(' ');
    const target = path.replaceAll(/:\w+/g, 'swagger-ui.css').replace('*', 'x');
    const { status } = await app.request(target, { method: method as string }, {});
    if (status !== 401) found.push(route);
  }
  return found;
};

describe('a closed gateway', () => {
  let subject: Subject;
  let authenticator: Authenticator;
  const closed = () => {
    const log = recordingLog();
    const { gate } = gateOn(subject.provider, log);
    return createApp({ gate, authenticator, log, ...APP_LIMITS }) as unknown as Hono;
  };
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
    ({ authenticator } = await closedTo('only'));
  });
  afterAll(() => subject.close());

  it('[SPEC Authentication 4] [SPEC Authentication 5] [Decision 13] answers nothing but the public routes without a key', async () => {
    const routes = everything(closed());
    for (const known of [
      'POST /memories',
      'PATCH /memories/:id',
      'GET /memories/search',
      'POST /context',
      'GET /audit',
    ])
      expect(routes).toContain(known);
    const open = await unguarded(closed());
    // Pages are found under the path of their middleware too.
    expect(open.filter((route) => route !== 'GET /docs/*').sort()).toEqual(PUBLIC.toSorted());
  });

  it('[Decision 13] a route that stands before the authentication is found by the test above', async () => {
    for (const method of ['get', 'post', 'all'] as const) {
      const leaky = new Hono()[method]('/leak', (c) => c.text('secret')).route('/', closed());
      expect(await unguarded(leaky)).toContain(method === 'post' ? 'POST /leak' : 'GET /leak');
    }
  });
});

describe('a closed gateway on a socket', () => {
  let server: RunningServer;
  let keys: Record<'first' | 'second', string>;
  beforeAll(async () => {
    const { authenticator, ...rest } = await closedTo('first', 'second');
    server = await startServer({ authenticator });
    ({ keys } = rest);
  });
  afterAll(() => server.close());

  it('[SPEC Errors unauthorized] [Decision 13] says that a key is needed, and of what kind', async () => {
    for (const bytes of [request('GET', '/memories?user_id=u'), request('GET', '/nowhere')]) {
      const reply = await exchange(server.port, bytes);
      expectError(reply, 'unauthorized');
      expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer /);
    }
    const { status } = await exchange(server.port, request('GET', '/nowhere', [`X-API-Key: ${keys.first}`]));
    expect(status).toBe(404);
  });

  it('[SPEC Errors unauthorized] a body is not waited for', async () => {
    const head = request('POST', '/memories', ['Content-Type: application/json', 'Content-Length: 5000'], '{');
    expectError(await exchange(server.port, head), 'unauthorized');
  });

  it('[Decision 13] [Decision 15] the access log names the key, never its secret', async () => {
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    const asked = [
      jsonRequest('POST', '/memories', body, ['X-Request-Id: by-first', `Authorization: Bearer ${keys.first}`]),
      jsonRequest('POST', '/memories', body, ['X-Request-Id: by-second', `X-API-Key: ${keys.second}`]),
      jsonRequest('POST', '/memories', body, ['X-Request-Id: by-nobody']),
      request('GET', '/capabilities', ['X-Request-Id: by-anybody', `X-API-Key: ${keys.second}`]),
    ];
    for (const bytes of asked) await exchange(server.port, bytes);
    const appOf = (id: string) =>
      server.lines.find(({ fields }) => (fields as { request_id?: string }).request_id === id)?.fields;
    await expect.poll(() => appOf('by-anybody')).toMatchObject({ app: null, status: 200 });
    expect(appOf('by-first')).toMatchObject({ app: 'first', status: 201 });
    expect(appOf('by-second')).toMatchObject({ app: 'second', status: 201 });
    expect(appOf('by-nobody')).toMatchObject({ app: null, status: 401 });
    for (const key of Object.values(keys)) {
      expect(JSON.stringify(server.lines)).not.toContain(key.slice(-40));
    }
  });
});
