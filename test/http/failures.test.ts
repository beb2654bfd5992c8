import { afterEach, describe, expect, it } from 'vitest';
import { OmpError, type Provider, providerError } from '#contract';
import { expectError } from '../support/expect-error.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

const SECRET = 'postgres://admin:hunter2@10.0.0.7/db SELECT secret FROM memories';

/** The memory provider never fails; this one fails in every verb, as told. All around it is real. */
const failing =
  (fail: () => Promise<never>) =>
  (provider: Provider): Provider => ({
    ...provider,
    add: fail,
    get: fail,
    update: fail,
    delete: fail,
    list: fail,
    search: fail,
    ping: fail,
  });

describe('a backend in trouble', () => {
  let server: RunningServer | undefined;
  afterEach(() => server?.close());
  const start = async (fail: () => Promise<never>): Promise<RunningServer> => {
    server = await startServer({ alter: failing(fail) });
    return server;
  };
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

  it('[SPEC Errors provider_error] [SPEC Errors provider] [Decision 16] an unexpected failure is a 502 that names the backend and tells nothing inner', async () => {
    const running = await start(() => Promise.reject(new Error(SECRET)));
    for (const reply of await everywhere(running)) {
      expect(expectError(reply, 'provider_error').provider).toBe('memory');
      expect(reply.text).not.toMatch(/hunter2|10\.0\.0\.7|SELECT|secret/i);
    }
  });

  it('[SPEC Errors provider_error] [Decision 16] so is a failure that is no error object, or is thrown at once', async () => {
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
      await running.close();
      server = undefined;
    }
  });

  it('[SPEC Errors provider_error] what the provider says of itself is passed on, its cause is not', async () => {
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

  it('[SPEC Errors request_id] [Decision 16] the cause of a refusal is logged too, as a warning', async () => {
    const cause = new Error('429 from the service');
    const running = await start(() => Promise.reject(new OmpError('rate_limited', 'slow down', { cause })));
    const reply = await running.client.ask('/memories/mem_x');
    const { request_id } = expectError(reply, 'rate_limited');
    const logged = running.lines.filter(({ level }) => level !== 'info');
    expect(logged).toMatchObject([{ level: 'warn', fields: { request_id, err: { cause } } }]);
  });

  it('[SPEC Errors request_id] [Decision 16] the full cause is logged under the id the client was given', async () => {
    const cause = new Error(SECRET);
    const running = await start(() => Promise.reject(cause));
    const { request_id } = expectError(await running.client.ask('/memories/mem_x'), 'provider_error');
    const logged = running.lines.filter(({ level }) => level === 'error');
    expect(logged).toHaveLength(1);
    expect(logged[0]?.fields).toMatchObject({ request_id, err: { cause } });
  });

  it('[SPEC Errors rate_limited] [Decision 16] the rate limit of the backend is a 429 with its Retry-After', async () => {
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
    await running.close();
    const silent = await start(() => Promise.reject(limit()));
    expect((await silent.client.ask('/memories/mem_x')).headers.get('retry-after')).toBeNull();
  });

  it('[SPEC GET /capabilities] what the gateway knows itself is answered while the backend is down', async () => {
    const running = await start(() => Promise.reject(new Error(SECRET)));
    expect((await running.client.ask('/capabilities')).status).toBe(200);
    expectError(await running.client.ask('/nowhere'), 'not_found');
    expectError(await running.client.tell('POST', '/memories', {}), 'invalid_request');
  });
});

describe('a backend with fewer verbs', () => {
  let server: RunningServer;
  afterEach(() => server.close());
  /** The least a provider can be: the memory provider with its optional verbs taken away. */
  const least = ({ name, capabilities, add, get, ping, close }: Provider): Provider => ({
    name,
    capabilities: { ...capabilities, vector_search: false, keyword_search: false },
    add,
    get,
    ping,
    close,
  });

  it('[SPEC Errors unsupported_capability] [SPEC GET /memories/search requires] each missing verb is refused and not declared', async () => {
    server = await startServer({ alter: least });
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
