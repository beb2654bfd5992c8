import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import { type Call, type Consistency, OmpError, type Provider, providerError } from '#contract';
import { consistencyOf } from '../../src/http/request.ts';
import { expectError } from '../support/expect-error.ts';
import { type RunningServer, serverForTest } from '../support/server.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';

const SECRET = 'postgres://admin:hunter2@10.0.0.7/db SELECT secret FROM memories';

/** The memory provider, failing in every verb. Everything else is real. */
const failing =
  (fail: () => Promise<never>) =>
  (provider: Provider): Provider => ({
    ...provider,
    ...{ add: fail, get: fail, update: fail, delete: fail, list: fail, search: fail, ping: fail },
  });

describe('a failing backend', () => {
  const start = (fail: () => Promise<never>) => serverForTest({ alter: failing(fail) });
  /** Every endpoint that reaches the backend. */
  const everywhere = async ({ client }: RunningServer) => {
    const user_id = freshUser();
    return [
      await client.tell('POST', '/memories', { content: 'x', user_id }),
      await client.ask('/memories/mem_x'),
      await client.tell('PATCH', '/memories/mem_x', { content: 'x' }),
      await client.tell('DELETE', '/memories/mem_x'),
      await client.ask('/memories', { user_id }),
      await client.ask('/memories/search', { user_id, q: 'x' }),
      await client.tell('POST', '/context', { user_id, query: 'x' }),
      await client.ask('/healthz'),
    ];
  };

  it('[SPEC Errors provider_error] [SPEC Errors provider] [Decision 16] is a 502 that names the backend and reveals no details', async () => {
    const running = await start(() => Promise.reject(new Error(SECRET)));
    for (const reply of await everywhere(running)) {
      expect(expectError(reply, 'provider_error').provider).toBe('memory');
      expect(reply.text).not.toMatch(/hunter2|10\.0\.0\.7|SELECT|secret/i);
    }
  });

  it('[SPEC Errors provider_error] [Decision 16] also if it throws synchronously or something else than an error', async () => {
    const odd: readonly (() => Promise<never>)[] = [
      () => Promise.reject('text'),
      () => Promise.reject(undefined),
      () => {
        throw new Error(SECRET);
      },
    ];
    for (const fail of odd) {
      const running = await start(fail);
      for (const reply of await everywhere(running)) expectError(reply, 'provider_error');
    }
  });

  it('[SPEC Errors provider_error] the message of the provider is returned, its cause is not', async () => {
    const running = await start(() =>
      Promise.reject(providerError('memory', 'the backend is down', new Error(SECRET))),
    );
    for (const reply of await everywhere(running)) {
      expect(expectError(reply, 'provider_error')).toMatchObject({
        message: 'the backend is down',
        provider: 'memory',
      });
      expect(reply.text).not.toContain('hunter2');
    }
  });

  const cause = new Error(SECRET);
  it.each([
    ['warn', 'rate_limited', new OmpError('rate_limited', 'slow down', { cause })],
    ['error', 'provider_error', cause],
  ] as const)(
    '[SPEC Errors request_id] [Decision 16] the full cause is logged under the request id: %s',
    async (level, code, failure) => {
      const running = await start(() => Promise.reject(failure));
      const { request_id } = expectError(await running.client.ask('/memories/mem_x'), code);
      const logged = running.lines.filter((line) => line.level !== 'info');
      expect(logged).toMatchObject([{ level, fields: { request_id, err: { cause } } }]);
    },
  );

  it('[Decision 16] [Decision 28] an error without a cause is logged in one line, and one of an open circuit breaker not at all', async () => {
    const logged = async (retryAfter?: number) => {
      const error = new OmpError('provider_error', 'no answer', { ...(retryAfter && { retryAfter }) });
      const running = await start(() => Promise.reject(error));
      const replies = await everywhere(running);
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([502]));
      return running.lines.filter(({ level }) => level !== 'info');
    };
    expect(await logged(1)).toEqual([]);
    const lines = await logged();
    expect(lines.length).toBeGreaterThan(0);
    for (const { fields } of lines) {
      expect(fields).toEqual({ request_id: expect.any(String), provider: 'memory', reason: 'no answer' });
    }
  });

  it('[SPEC Errors rate_limited] [Decision 16] a rate limit of the backend is a 429 with its Retry-After', async () => {
    const limit = (retryAfter?: number) =>
      new OmpError('rate_limited', 'the backend asks to slow down', {
        provider: 'memory',
        ...(retryAfter && { retryAfter }),
      });
    const running = await start(() => Promise.reject(limit(7)));
    for (const reply of await everywhere(running)) {
      expect(expectError(reply, 'rate_limited').provider).toBe('memory');
      expect(reply.headers.get('retry-after')).toBe('7');
    }
    const silent = await start(() => Promise.reject(limit()));
    expect((await silent.client.ask('/memories/mem_x')).headers.get('retry-after')).toBeNull();
  });

  it('[SPEC GET /capabilities] the gateway still answers what needs no backend', async () => {
    const running = await start(() => Promise.reject(new Error(SECRET)));
    expect((await running.client.ask('/capabilities')).status).toBe(200);
    expectError(await running.client.ask('/nowhere'), 'not_found');
    expectError(await running.client.tell('POST', '/memories', {}), 'invalid_request');
  });
});

describe('a backend with fewer verbs', () => {
  /** The least a provider can be: the memory provider with its optional verbs taken away. */
  const least = ({ name, capabilities, add, get, ping, close }: Provider): Provider => ({
    name,
    capabilities: { ...capabilities, vector_search: false, keyword_search: false },
    add,
    get,
    ping,
    close,
  });

  it('[SPEC Errors unsupported_capability] [SPEC GET /memories/search requires] each missing verb is rejected and not declared', async () => {
    const server = await serverForTest({ alter: least });
    const { client } = server;
    const user_id = freshUser();
    const { id } = await client.add({ content: 'x', user_id });
    expect((await client.get(id)).content).toBe('x');
    expect((await client.capabilities()).verbs.toSorted()).toEqual(['add', 'get']);
    const missing = [
      await client.tell('PATCH', client.byId(id), { content: 'y' }),
      await client.tell('DELETE', client.byId(id)),
      await client.ask('/memories', { user_id }),
      await client.ask('/memories/search', { user_id, q: 'x' }),
      await client.tell('POST', '/context', { user_id, query: 'x' }),
      await client.ask('/audit', { user_id }),
    ];
    for (const reply of missing) expectError(reply, 'unsupported_capability');
  });
});

const subjects: Subject[] = [];
afterEach(async () => {
  for (const subject of subjects.splice(0)) await subject.close();
});

/** A gateway whose backend calls `say` at every get and add. */
async function open(say: (consistency: Consistency) => void, consistency_tokens = true): Promise<Subject> {
  const tell = ({ consistency }: Call) => consistency && say(consistency);
  const alter = (all: Provider): Provider => {
    const provider = all as Required<Provider>;
    return {
      ...provider,
      capabilities: { ...provider.capabilities, consistency_tokens },
      get: (ref, call) => {
        tell(call);
        return provider.get(ref, call);
      },
      add: (request, call) => {
        tell(call);
        return provider.add(request, call);
      },
    };
  };
  const subject = await openSubject({ provider: 'memory', options: {}, alter });
  subjects.push(subject);
  return subject;
}

const INPUT = { content: 'x', user_id: 'u' };
const headersOf = ({ headers }: { headers: Headers }) => [
  headers.get('x-consistency-token'),
  headers.get('x-consistency'),
];

it('[Decision 23] the token of the backend is a response header, and that of a request reaches the backend unless it is too long', async () => {
  const seen: unknown[] = [];
  const { as } = await open(({ token, answer }) => {
    seen.push(token);
    answer('a-token_1');
  });
  const tokens = ['an-opaque_token', '', 'x'.repeat(1_024), 'not one of ours!', 'x'.repeat(1_025), undefined];
  for (const token of tokens) {
    const headers: Record<string, string> = token === undefined ? {} : { 'x-consistency-token': token };
    const added = await as(headers).tell('POST', '/memories', INPUT);
    expect([added.status, ...headersOf(added)]).toEqual([201, 'a-token_1', null]);
  }
  expect(seen).toEqual([...tokens.slice(0, 4), undefined, undefined]);
});

it('[Decision 23] a response that may lack writes says so, errors included', async () => {
  const { client } = await open(({ behind }) => behind());
  const missing = await client.ask('/memories/mem_x');
  expect([missing.status, ...headersOf(missing)]).toEqual([404, null, 'behind']);
});

it('[Decision 23] a backend without tokens gets none and returns none', async () => {
  const heard: unknown[] = [];
  const { as } = await open((consistency) => heard.push(consistency), false);
  const reply = await as({ 'x-consistency-token': 'a-token' }).tell('POST', '/memories', INPUT);
  expect(heard).toEqual([]);
  expect([reply.status, ...headersOf(reply)]).toEqual([201, null, null]);
});

it('[Decision 23] a token set after the response is ignored', async () => {
  let late: Consistency | undefined;
  const app = new Hono()
    .use((_, next) => next())
    .get('/', (c) => {
      late = consistencyOf(c);
      return c.text('gone');
    });
  const reader = (await app.request('/')).body?.getReader();
  // The answer is being sent.
  late?.answer('a-token');
  late?.behind();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('gone');
});
