import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Call,
  type ErrorCode,
  type KeyStore,
  OmpError,
  type StoredKey,
  type StoredWebhook,
  type WebhookStore,
} from '#contract';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { ALL_GRANTS, ANONYMOUS, type Authenticator } from '../../src/core/grants.ts';
import { createRetention } from '../../src/features/retention/retention.ts';
import { openWebhooks } from '../../src/features/webhooks/webhooks.ts';
import { createApp } from '../../src/http/app.ts';
import { openLimits } from '../rate-limit/limits.ts';
import { type Client, clientOf, type Reply } from '../support/client.ts';
import { closedTo } from '../support/closed.ts';
import { call } from '../support/requests.ts';
import type { Store } from '../support/stores.ts';
import { APP_LIMITS, gateOn, openSubject, recordingLog, type Subject } from '../support/subject.ts';
import { ERRORS, MAX_BODY_BYTES, type WireAudit } from '../support/wire.ts';
import {
  type Document,
  type Endpoint,
  endpointsOf,
  fetchDocument,
  type Judge,
  judgeOf,
  pointerTo,
  type SecurityScheme,
} from './document.ts';

/** Only without the assets of the page; tested in docs-page.test.ts. */
const UNREACHED = ['GET /docs not_found'];

/** Actions beside the verbs of the protocol that the audit log has of a user. */
const EXTENSIONS = ['stats', 'export', 'import', 'changes', 'versions', 'restore', 'purge'];

/** Headers that the document lists exactly for the responses that have them. */
const HEADERS =
  'ETag RateLimit RateLimit-Policy Retry-After WWW-Authenticate X-Consistency X-Consistency-Token X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset X-Request-Id'.split(
    ' ',
  );

/** Why a request fails. */
type Condition = 'none' | ErrorCode;
const CONDITIONS = ['none', ...Object.keys(ERRORS)] as readonly Condition[];

describe('every response is documented', () => {
  let subject: Subject;
  let document: Document;
  let judge: Judge;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    document = await fetchDocument(subject.client);
    judge = judgeOf(document, { closed: true });
  });
  afterAll(() => Promise.all([subject.close(), judge.close()]));

  const withId = (operationId: string): Endpoint =>
    endpointsOf(document).find(({ operation }) => operation.operationId === operationId) as Endpoint;

  /** The gateway with the same memories, under a condition; with a rate limit, so that it sends all headers. */
  const openUnder = async (condition: Condition) => {
    const log = recordingLog();
    const store = alter(behind({ ...subject.provider, keys: oneKey(), embeddingUsage: USAGE }), condition);
    const webhooks = openWebhooks({ secret: 'x'.repeat(32), allow_private: false }, store, log)?.manage;
    const retention = createRetention([{ tag: 'old', days: 1 }]);
    const { gate, auditQueue } = gateOn(store, log, { webhooks, retention });
    const closed = condition === 'unauthorized' || condition === 'scope_denied';
    const { authenticator, key } = closed ? await powerless() : { authenticator: ADMIN, key: '' };
    const { requests } = await openLimits({ store: 'memory' }, { requests_per_minute: 1_000, now: () => 0 });
    if (condition === 'rate_limited') while ((await requests.take('address:unknown')).allowed);
    const app = createApp({ gate, authenticator, rate: { requests, failures: undefined }, log, ...APP_LIMITS });
    const credential: Record<string, string> = condition === 'scope_denied' ? { 'x-api-key': key } : {};
    const client = clientOf(async (path, init) =>
      app.request(path, { ...init, headers: { ...(init?.headers as object), ...credential } }, {}),
    );
    return { client, close: auditQueue.close };
  };

  const seen = new Set<string>();
  for (const condition of CONDITIONS) {
    it(`under the condition ${condition}`, async () => {
      const { client, close } = await openUnder(condition);
      for (const endpoint of endpointsOf(document)) {
        const { id } = await subject.client.add({ content: 'prefers pnpm', user_id: 'u1' });
        await subject.provider.webhooks?.create({ webhook: WEBHOOK, most: 50 }, call);
        const reply = await send(client, endpoint, condition, id);
        const name = `${endpoint.method} ${endpoint.path}`;
        seen.add(`${name} ${codeOf(reply) ?? reply.status}`);
        await check(reply, endpoint, name, condition);
        await subject.provider.freezing?.unfreeze(call);
      }
      await close();
    });
  }

  it('[Decision 36] [Decision 51] and under the conditions of If-Match, If-None-Match and a cursor that is gone', async () => {
    const { client, close } = await openUnder('none');
    const { id } = await subject.client.add({ content: 'prefers pnpm', user_id: 'u1' });
    const old = { 'if-match': '"2001-01-01T00:00:00.000Z"' };
    for (const [operationId, reply] of [
      ['getMemory', await client.ask(client.byId(id), {}, { 'if-none-match': '*' })],
      ['updateMemory', await client.tell('PATCH', client.byId(id), {}, old)],
      ['deleteMemory', await client.tell('DELETE', client.byId(id), undefined, old)],
      ['restoreVersion', await client.tell('POST', `${client.byId(id)}/restore`, { version: 1 }, old)],
      ['readChanges', await client.ask('/changes', { after: '0badc0de-1' })],
    ] as const) {
      const endpoint = withId(operationId);
      const name = `${endpoint.method} ${endpoint.path}`;
      seen.add(`${name} ${reply.status}`);
      await check(reply, endpoint, name, 'none');
    }
    await close();
  });

  it('[Decision 53] and in a frozen store', async () => {
    const { client, close } = await openUnder('none');
    const { id } = await subject.client.add({ content: 'prefers pnpm', user_id: 'u2' });
    const memory = { user_id: 'u2', content: 'x' };
    const moved = { ...memory, id: 'own', created_at: '2026-03-01T09:30:00.000Z' };
    await client.tell('PATCH', client.byId(id), { content: 'z' });
    await client.tell('POST', '/import', { memories: [{ ...moved, id: 'old', tags: ['old'] }] });
    await client.tell('POST', '/freeze');
    for (const [operationId, reply] of [
      ['addMemory', await client.tell('POST', '/memories', memory)],
      ['addMemories', await client.tell('POST', '/memories/batch', { memories: [memory] })],
      ['updateMemory', await client.tell('PATCH', client.byId(id), { content: 'y' })],
      ['deleteMemory', await client.tell('DELETE', client.byId(id))],
      ['restoreVersion', await client.tell('POST', `${client.byId(id)}/restore`, { version: 1 })],
      ['purgeVersions', await client.tell('DELETE', `${client.byId(id)}/versions`)],
      ['rollBack', await client.tell('POST', '/users/u2/rollback', { since: '2001-01-01' })],
      ['applyRetention', await client.tell('POST', '/retention', {})],
      ['eraseUser', await client.tell('DELETE', '/users/u2/memories')],
      ['importMemories', await client.tell('POST', '/import', { memories: [moved] })],
    ] as const) {
      const endpoint = withId(operationId);
      const name = `${endpoint.method} ${endpoint.path}`;
      seen.add(`${name} ${reply.status}`);
      await check(reply, endpoint, name, 'none');
    }
    await client.tell('DELETE', '/freeze');
    await close();
  });

  it('and every documented response has been seen', () => {
    const documented = endpointsOf(document).flatMap(({ method, path, operation }) =>
      Object.entries(operation.responses).flatMap(([status, { content }]) => {
        const codes = Object.keys(content?.['application/json']?.examples ?? {});
        return (codes.length > 0 ? codes : [status]).map((answer) => `${method} ${path} ${answer}`);
      }),
    );
    expect([...seen, ...UNREACHED].sort()).toEqual(documented.sort());
  });

  it('[Decision 11] and the audit log matches its schema', async () => {
    const endpoint = withId('readAudit');
    const reply = await subject.client.ask(endpoint.path, { user_id: 'u1', limit: 1000 });
    expect(await mistakesOf(reply, endpoint)).toEqual([]);
    const { entries } = reply.body as WireAudit;
    expect(new Set(entries.map(({ outcome }) => outcome))).toEqual(
      new Set(['ok', 'scope_denied', 'provider_error', 'invalid_request']),
    );
    expect([...new Set(entries.map(({ action }) => action))].sort()).toEqual(
      [...subject.capabilities.verbs, ...EXTENSIONS].sort(),
    );
  });

  it('[SPEC Authentication 2] [Decision 13] and every security scheme works', async () => {
    const { authenticator, keys } = await closedTo('any');
    const { client, close } = await openSubject({
      provider: 'memory',
      options: { scopes: 'native' },
      mode: 'keyword',
      authenticator,
    });
    const headersBy = (scheme: SecurityScheme, key: string): Record<string, string> =>
      scheme.type === 'http' ? { authorization: `${scheme.scheme} ${key}` } : { [scheme.name]: key };
    const ask = (...by: Parameters<typeof headersBy>) => client.ask('/memories', { user_id: 'u' }, headersBy(...by));
    for (const scheme of Object.values(document.components.securitySchemes)) {
      expect((await ask(scheme, keys.any)).status, scheme.type).toBe(200);
      expect((await ask(scheme, newKey().key)).status, scheme.type).toBe(401);
    }
    await close();
  });

  async function check(reply: Reply, endpoint: Endpoint, name: string, condition: Condition): Promise<void> {
    const answer = endpoint.operation.responses[reply.status];
    expect(answer, `${name} answered ${reply.status}: ${reply.text.slice(0, 300)}`).toBeDefined();
    // A rejection may have consistency headers without meaning. A batch whose memories are all denied succeeds without any.
    const found = (reply.status < 300 && condition !== 'scope_denied') || reply.status === 404;
    // These requests hold nothing that is ignored.
    const meant = (header: string) => header !== 'X-Ignored-Fields' && (found || !header.startsWith('X-Consistency'));
    const sent = HEADERS.filter((header) => reply.headers.has(header) && meant(header));
    expect(sent, name).toEqual(
      Object.keys(answer?.headers ?? {})
        .filter(meant)
        .sort(),
    );
    const [type] = Object.keys(answer?.content ?? {});
    if (type === undefined) return expect(reply.text, name).toBe('');
    expect(reply.headers.get('content-type'), name).toMatch(new RegExp(`^${type}(;|$)`));
    expect(await mistakesOf(reply, endpoint, type), `${name} ${reply.text.slice(0, 300)}`).toEqual([]);
  }

  const mistakesOf = (reply: Reply, { pointer }: Endpoint, type = 'application/json'): Promise<string[]> =>
    judge.mistakes(
      pointer + pointerTo('responses', String(reply.status), 'content', type, 'schema'),
      reply.body ?? reply.text,
    );
});

/** Lets everybody do everything, with keys too. */
const ADMIN: Authenticator = {
  authenticate: async () => ({ ...ANONYMOUS, grants: { ...ALL_GRANTS, admin: true } }),
};

const codeOf = (reply: Reply): string | undefined =>
  (reply.body as { error?: { code: string } } | undefined)?.error?.code;

/** A key that may only delete, in an empty scope. */
async function powerless() {
  const { key, ...kept } = newKey();
  const hashed = { name: 'powerless', key: toHashedKey(kept), grants: ['delete:nowhere'] };
  const log = recordingLog();
  const authenticator = await openAuthenticator({
    keys: [hashed],
    store: undefined,
    jwt: undefined,
    required: true,
    log,
  });
  return { authenticator, key };
}

/** The request of the document's examples, changed to cause the condition. */
async function send(client: Client, endpoint: Endpoint, condition: Condition, id: string): Promise<Reply> {
  const { method, operation, parameters } = endpoint;
  // No id of a memory is invalid, and none of a user unknown.
  const [, room = ''] = endpoint.path.split('/');
  const known = { keys: KEPT, webhooks: WEBHOOK.id }[room] ?? id;
  const ids = { not_found: 'mem_unknown', invalid_request: endpoint.path.startsWith('/users') ? '%20' : known };
  const path = endpoint.path
    .replace('{id}', ids[condition as keyof typeof ids] ?? known)
    .replace('{version}', condition === 'invalid_request' ? 'x' : '1');
  const content = operation.requestBody?.content['application/json'];
  if (content) {
    const bodies = { invalid_request: 'not an object', payload_too_large: 'x'.repeat(MAX_BODY_BYTES) };
    const body = condition in bodies ? bodies[condition as keyof typeof bodies] : content.example;
    const once = parameters.some(({ name }) => name === 'Idempotency-Key');
    return client.tell(method, path, body, once ? { 'idempotency-key': condition } : {});
  }
  if (method === 'DELETE') return client.tell(method, path);
  if (method === 'POST') return client.tell(method, condition === 'invalid_request' ? `${path}?from=x` : path);
  const inQuery = parameters.filter((parameter) => parameter.in === 'query' && parameter.example !== undefined);
  if (condition === 'invalid_request') return client.ask(path, { limit: 'x', since: 'x' });
  return client.ask(path, Object.fromEntries(inQuery.map(({ name, example }) => [name, String(example)])));
}

/** The keys of another provider: one that exists, and any that is made. */
function oneKey(): KeyStore {
  const { key: _, ...made } = newKey();
  const kept: StoredKey = {
    ...{ ...made, name: 'kept', users: null, grants: ['read:*'] },
    ...{ created_at: NOW, expires_at: null, revoked_at: null, last_used_at: null },
  };
  return {
    find: async (id) => (id === KEPT ? kept : undefined),
    hasAny: async () => true,
    list: async () => [kept],
    create: async (key) => ({ ...kept, ...key }),
    revoke: async () => ({ ...kept, revoked_at: NOW }),
    touch: async () => {},
    close: async () => {},
  };
}
/** Its secret is of another key: nothing is sent. */
const WEBHOOK: StoredWebhook = {
  ...{
    id: 'wh_1',
    url: 'https://example.com/',
    users: null,
    scope: null,
    actions: null,
    created_at: '2026-03-02T08:00:00.000Z',
  },
  ...{ secret: 'sealed', previous_secret: null, previous_until: null },
  ...{ state: 'active', cursor: '1', failing_since: null, undelivered: 0, deliveries: [] },
};
const USED = { day: '2026-03-02', app: null, model: 'm', texts: 2, tokens: 5, requests: 1 };
const USAGE: Required<Store>['embeddingUsage'] = { read: async () => [USED], since: () => NOW };
const KEPT = 'k3j2h1g0f9e8';
const NOW = '2026-03-02T08:00:00.000Z';

/** The store with every function replaced, those of its versions too, but for these. */
function altered(store: Store, change: (work: Work) => Work, unless: readonly string[]): Store {
  const all = (part: object, kept: readonly string[] = []) =>
    Object.fromEntries(
      Object.entries(part).map(([name, member]) => [
        name,
        typeof member === 'function' && !kept.includes(name) ? change(member) : member,
      ]),
    );
  return { ...store, ...all(store, unless), versions: all({ ...store.versions }) } as Store;
}
type Work = (...args: never[]) => unknown;

/** A provider that always issues a token and is always behind. */
const behind = (provider: Store): Store =>
  altered(
    { ...provider, capabilities: { ...provider.capabilities, consistency_tokens: true } },
    (verb) =>
      (...args) => {
        const { consistency } = args.at(-1) as unknown as Call;
        consistency?.answer('token');
        consistency?.behind();
        return verb(...args);
      },
    ['changes', 'ping', 'close', 'backlog', 'stats'],
  );

/** A provider that fails or lacks its verbs, if the condition needs it. */
function alter(provider: Store, condition: Condition): Store {
  if (condition === 'unsupported_capability') {
    const { name, capabilities, get, ping, close } = provider;
    return { name, capabilities, idempotent: false, get, ping, close };
  }
  if (condition !== 'provider_error') return provider;
  const fail = async () => {
    throw new OmpError(condition, 'not now', { provider: provider.name });
  };
  const keys = { ...oneKey(), list: fail, create: fail, revoke: fail };
  const webhooks = { ...provider.webhooks, list: fail, find: fail, create: fail, change: fail, delete: fail };
  const freezing = { current: fail, freeze: fail, unfreeze: fail };
  return {
    ...altered(provider, () => fail, ['close', 'keyUse', 'changesHeld', 'queryVector']),
    keys,
    webhooks: webhooks as unknown as WebhookStore,
    freezing,
    embeddingUsage: { ...USAGE, read: fail },
    ...(provider.audit && { audit: { ...provider.audit, read: fail } }),
  };
}
