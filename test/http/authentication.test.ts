import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OmpError, providerError } from '#contract';
import { ALL_GRANTS, type Authenticator, OPEN, type Principal } from '../../src/core/grants.ts';
import { createApp } from '../../src/http/app.ts';
import { openLimits, startLimited } from '../rate-limit/limits.ts';
import type { Client } from '../support/client.ts';
import { closedTo } from '../support/closed.ts';
import { expectError } from '../support/expect-error.ts';
import { exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { APP_LIMITS, freshUser, gateOn, openSubject, recordingLog, type Subject } from '../support/subject.ts';

const GOOD: Principal = { id: 'key:good', app: 'good', users: null, grants: ALL_GRANTS };
const LIMIT = 3;

/** Accepts one key, and records what it verifies. */
function lock() {
  const verified: (string | undefined)[] = [];
  const authenticator: Authenticator = {
    async authenticate(credential) {
      verified.push(credential);
      if (credential === 'broken') throw providerError('postgres', 'the database cannot be reached');
      if (credential !== 'good') throw new OmpError('unauthorized', 'no such key');
      return GOOD;
    },
  };
  return { authenticator, verified };
}

async function locked(failures_per_minute = LIMIT) {
  const { authenticator, verified } = lock();
  const clock = { time: 1_000_000 * 60_000 };
  const now = () => clock.time;
  const { failures } = await openLimits(
    { store: 'memory' },
    { requests_per_minute: undefined, failures_per_minute, now },
  );
  const { client } = await startLimited({
    authenticator,
    rate: { requests: undefined, failures },
    trusted_proxies: ['127.0.0.1'],
  });
  return { client, verified, clock };
}

type Headers = Record<string, string>;
const list = (client: Client, headers: Headers = {}) => client.ask('/memories', { user_id: 'u' }, headers);
const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

describe('[SPEC Authentication 2] [Decision 13] the credential', () => {
  it.for([
    ['Bearer', { authorization: 'Bearer good' }],
    ['Bearer in any case', { authorization: 'bEARER good' }],
    ['Bearer after several spaces', { authorization: 'Bearer   good' }],
    ['X-API-Key', { 'x-api-key': 'good' }],
    ['both, equal', { authorization: 'Bearer good', 'x-api-key': 'good' }],
    ['both, of which Bearer counts', { authorization: 'Bearer good', 'x-api-key': 'of another gateway on the way' }],
    ['X-API-Key behind a proxy with its own scheme', { authorization: 'Basic cHJveHk6cHJveHk=', 'x-api-key': 'good' }],
  ] as const)('is read from %s', async ([, headers]) => {
    const { client, verified } = await locked();
    expect((await list(client, headers)).status).toBe(200);
    expect(verified).toEqual(['good']);
  });

  it.for([
    ['none', {}],
    ['a wrong key', { authorization: 'Bearer wrong' }],
    ['a wrong X-API-Key', { 'x-api-key': 'wrong' }],
    ['an empty X-API-Key', { 'x-api-key': '' }],
    ['Bearer without a key', { authorization: 'Bearer' }],
    ['Bearer without a key, next to a good one', { authorization: 'Bearer', 'x-api-key': 'good' }],
    ['Bearer with more than a key', { authorization: 'Bearer good good' }],
    ['a wrong Bearer next to a good X-API-Key', { authorization: 'Bearer wrong', 'x-api-key': 'good' }],
    ['another scheme', { authorization: 'Basic good' }],
    ['the scheme of mem0 beside its interface', { authorization: 'Token good' }],
    ['no scheme', { authorization: 'good' }],
    ['Bearer without a space', { authorization: 'Bearergood' }],
    ['Bearer with a colon', { authorization: 'Bearer: good' }],
    ['Bearer with quotes', { authorization: 'Bearer "good"' }],
    ['Bearer with a comma', { authorization: 'Bearer good,' }],
    ['Bearer twice', { authorization: 'Bearer good, Bearer good' }],
    ['Bearer with blanks alone', { authorization: 'Bearer  ' }],
    ['a scheme before X-API-Key', { 'x-api-key': 'Bearer good' }],
    ['two keys', { 'x-api-key': 'good,good' }],
    ['a cookie', { cookie: 'api_key=good' }],
    ['another header', { 'x-auth-token': 'good' }],
    ['a key in other letters', { 'x-api-key': 'GOOD' }],
  ] as const)('[SPEC Authentication 5] [SPEC Errors unauthorized] is rejected with 401: %s', async ([, headers]) => {
    const { client } = await locked();
    const reply = await list(client, headers);
    expect(expectError(reply, 'unauthorized')).not.toHaveProperty('provider');
    expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer\b/);
  });

  it('[SPEC Authentication 3] is ignored by an open gateway, and never counted as a failure', async () => {
    const asked: string[] = [];
    const note = async (key: string) => {
      asked.push(key);
      return { allowed: true, remaining: 0, reset: 1 };
    };
    const rate = { requests: undefined, failures: { limit: 1, take: note } };
    const { client } = await startLimited({ authenticator: OPEN, rate });
    for (const headers of [{}, bearer('whatever'), { 'x-api-key': 'whatever' }, { authorization: 'Bearer' }]) {
      expect((await list(client, headers)).status).toBe(200);
    }
    expect(asked).toEqual([]);
  });
});

describe('[Decision 17] [SPEC Errors rate_limited] failed authentications', () => {
  it('over the limit get 429 with the time to wait', async () => {
    const { client, clock } = await locked();
    for (let i = 0; i < LIMIT; i++) expectError(await list(client, bearer(`guess ${i}`)), 'unauthorized');
    const reply = await list(client, bearer('guess'));
    expect(expectError(reply, 'rate_limited')).not.toHaveProperty('provider');
    const wait = Number(reply.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(0);
    clock.time += wait * 1_000;
    expectError(await list(client, bearer('guess')), 'unauthorized');
  });

  it('do not lock out valid credentials', async () => {
    const { client, verified } = await locked();
    for (let i = 0; i <= LIMIT; i++) await list(client, bearer('guess'));
    expect((await list(client, bearer('good'))).status).toBe(200);
    expect(verified.at(-1)).toBe('good');
    expectError(await list(client, bearer('guess')), 'rate_limited');
  });

  it('without a credential are counted separately', async () => {
    const { client } = await locked();
    const anonymous = () => client.ask('/robots.txt');
    for (let i = 0; i < LIMIT; i++) expectError(await anonymous(), 'unauthorized');
    expectError(await anonymous(), 'rate_limited');
    expect((await list(client, bearer('good'))).status).toBe(200);
    for (let i = 0; i < LIMIT; i++) expectError(await list(client, bearer('guess')), 'unauthorized');
    expectError(await list(client, bearer('guess')), 'rate_limited');
  });

  it('are counted per address', async () => {
    const { client } = await locked();
    const from = (address: string) => ({ ...bearer('guess'), 'x-forwarded-for': address });
    for (let i = 0; i < LIMIT; i++) expectError(await list(client, from(`2001:db8:1:2::${i}`)), 'unauthorized');
    expectError(await list(client, from('2001:db8:1:2:3::4')), 'rate_limited');
    expectError(await list(client, from('2001:db8:1:3::')), 'unauthorized');
  });

  it('sent concurrently get at most the limit of 401', async () => {
    const { client } = await locked();
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => list(client, bearer(`guess ${i}`))));
    expect(replies.filter(({ status }) => status === 401)).toHaveLength(LIMIT);
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(20 - LIMIT);
  });

  it('exclude successes and backend errors', async () => {
    const { client } = await locked();
    for (let i = 0; i < 2 * LIMIT; i++) {
      expect((await list(client, bearer('good'))).status).toBe(200);
      expectError(await list(client, bearer('broken')), 'provider_error');
    }
  });

  it('are not limited if the limit is 0', async () => {
    const { client } = await locked(0);
    for (let i = 0; i < 40; i++) expectError(await list(client, bearer('guess')), 'unauthorized');
  });

  it('[SPEC Authentication 4] do not close the public paths', async () => {
    const { client } = await locked();
    for (let i = 0; i <= LIMIT; i++) await list(client, bearer('guess'));
    for (const path of ['/healthz', '/capabilities', '/openapi.json']) {
      expect((await client.ask(path, {}, bearer('guess'))).status, path).toBe(200);
    }
  });
});

/** Everything that needs no key (SPEC, Authentication 4; Decision 13). */
const PUBLIC = [
  '/healthz',
  '/livez',
  '/readyz',
  '/capabilities',
  '/openapi.json',
  '/docs',
  '/docs/start.js',
  '/docs/:asset',
].map((path) => `GET ${path}`);
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];

/** Every method on every path of the app, middleware included, and on an unknown path. */
const everything = (app: Pick<Hono, 'routes'>): string[] => {
  const paths = new Set([...app.routes.map(({ path }) => path), '/nowhere']);
  return [...paths].flatMap((path) => METHODS.map((method) => `${method} ${path}`));
};

/** What the app does not answer with 401 without a key. */
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

  it('[SPEC Authentication 4] [SPEC Authentication 5] [Decision 13] answers only the public routes without a key', async () => {
    const routes = everything(closed());
    for (const known of ['POST /memories', 'PATCH /memories/:id', 'GET /audit']) expect(routes).toContain(known);
    const open = await unguarded(closed());
    // `/docs/*` is the path of a middleware.
    expect(open.filter((route) => route !== 'GET /docs/*').sort()).toEqual(PUBLIC.toSorted());
  });

  it('[Decision 13] a route before the authentication is found by the test above', async () => {
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

  it('[SPEC Errors unauthorized] does not wait for a body', async () => {
    const head = request('POST', '/memories', ['Content-Type: application/json', 'Content-Length: 5000'], '{');
    expectError(await exchange(server.port, head), 'unauthorized');
  });

  it('[Decision 13] [Decision 15] logs the name of the key, never its secret', async () => {
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    const asked = [
      jsonRequest('POST', '/memories', body, ['X-Request-Id: by-first', `Authorization: Bearer ${keys.first}`]),
      jsonRequest('POST', '/memories', body, ['X-Request-Id: by-second', `X-API-Key: ${keys.second}`]),
      jsonRequest('POST', '/memories', body, ['X-Request-Id: by-none']),
      request('GET', '/capabilities', ['X-Request-Id: by-open', `X-API-Key: ${keys.second}`]),
    ];
    for (const bytes of asked) await exchange(server.port, bytes);
    const appOf = (id: string) =>
      server.lines.find(({ fields }) => (fields as { request_id?: string }).request_id === id)?.fields;
    await expect.poll(() => appOf('by-open')).toMatchObject({ app: null, status: 200 });
    expect(appOf('by-first')).toMatchObject({ app: 'first', status: 201 });
    expect(appOf('by-second')).toMatchObject({ app: 'second', status: 201 });
    expect(appOf('by-none')).toMatchObject({ app: null, status: 401 });
    for (const key of Object.values(keys)) {
      expect(JSON.stringify(server.lines)).not.toContain(key.slice(-40));
    }
  });
});
