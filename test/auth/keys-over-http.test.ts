import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { KeyStore } from '#contract';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { hashOf, newKey, storeKey } from '../../src/auth/credentials.ts';
import type { Authenticator } from '../../src/core/grants.ts';
import type { Webhooks } from '../../src/features/webhooks/interface.ts';
import { createApp } from '../../src/http/app.ts';
import { openStore, type TestDatabase } from '../postgres/store.ts';
import type { Client, Fields, Reply } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import type { Store } from '../support/stores.ts';
import { APP_LIMITS, clientTo, gateOn, openSubject, recordingLog } from '../support/subject.ts';
import { advance, call } from './call.ts';

let store: TestDatabase;
let provider: Store;
let keys: KeyStore;
beforeAll(async () => {
  store = await openStore();
  provider = await store.open({ mode: 'keyword' });
  keys = provider.keys as KeyStore;
});
afterAll(() => store.close());
beforeEach(() => store.sql(`delete from ${store.names.apiKeys}`));

interface Made {
  readonly id: string;
  readonly name: string;
  readonly untrusted?: boolean;
  readonly key: string;
}
interface Page {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly next_cursor: string | null;
}

/** A gateway on the store, and a client of each key. `configured`: grants of a key that the store does not have. */
async function openGateway(configured?: readonly string[], webhooks?: Webhooks) {
  const log = recordingLog();
  const fresh = newKey();
  const authenticator = await openAuthenticator({
    keys: configured ? [{ name: 'configured', key: toHashedKey(fresh), grants: [...configured] }] : [],
    ...{ store: keys, jwt: undefined, required: false, log },
  });
  const { gate, auditQueue } = gateOn(provider, log, { webhooks });
  // Its entries must not come into a later test.
  onTestFinished(auditQueue.close);
  const serve = (by: Authenticator) => {
    const app = createApp({ gate, authenticator: by, log, ...APP_LIMITS });
    return (key?: string) => clientTo(app, key === undefined ? {} : { 'x-api-key': key });
  };
  return { as: serve(authenticator), key: fresh.key, log, flush: auditQueue.close, followers: gate.feed.followers };
}
const openAdmin = async (webhooks?: Webhooks) => {
  const { as, key, ...gateway } = await openGateway(['admin:*'], webhooks);
  return { as, admin: as(key), ...gateway };
};

const make = async (client: Client, fields: Fields = {}): Promise<Made> => {
  const reply = await client.tell('POST', '/keys', { name: 'editor', grants: ['read:*', 'write:*'], ...fields });
  expect(reply.status, reply.text).toBe(201);
  return reply.body as Made;
};
const revoke = (client: Client, id: string) => client.tell('DELETE', `/keys/${encodeURIComponent(id)}`);
const listed = async (client: Client, query = {}) => (await client.ask('/keys', query)).body as Page;
const codeOf = ({ body }: Reply) => (body as { error: { code: string } }).error.code;
const storedNames = async () => (await keys.list({}, call)).map(({ name }) => name);

describe('[Decision 41] an admin', () => {
  it('makes a key that works at once, lists it without its secret, and revokes it', async () => {
    const { as, admin } = await openAdmin();
    const wanted = { users: ['ana', 'ben'], expires_at: '2999-01-02T03:04:05+01:00' };
    const { key, ...made } = await make(admin, wanted);
    expect(made).toEqual({
      id: key.slice(4, 16),
      ...{ name: 'editor', grants: ['read:*', 'write:*'], users: ['ana', 'ben'] },
      ...{ expires_at: '2999-01-02T02:04:05.000Z', revoked_at: null, last_used_at: null, untrusted: false },
      created_at: expect.any(String),
    });
    expect((await keys.find(made.id, call))?.hash).toBe(hashOf(key));

    const { id } = await as(key).add({ user_id: 'ana', content: 'tea' });
    expect(codeOf(await as(key).tell('POST', '/memories', { user_id: 'cleo', content: 'tea' }))).toBe('scope_denied');
    expect(codeOf(await as(key).ask('/keys'))).toBe('scope_denied');

    const page = await admin.ask('/keys');
    expect(page.body).toEqual({ items: [made], next_cursor: null });
    expect(page.text).not.toContain(key.slice(17));
    expect(page.text).not.toContain(hashOf(key));

    const revoked = await revoke(admin, made.id);
    expect([revoked.status, revoked.body]).toEqual([200, { ...made, revoked_at: expect.any(String) }]);
    // A gateway that has not seen the key rejects it; this one does within seconds, as test/auth/authenticator.test.ts shows.
    const { as: elsewhere } = await openGateway();
    expectError(await elsewhere(key).ask(`/memories/${id}`), 'unauthorized');
    expect((await revoke(admin, made.id)).body).toEqual(revoked.body);
  });

  it('[Decision 54] makes an untrusted key, which marks what it writes and manages no keys', async () => {
    const { as, admin } = await openAdmin();
    const { key, untrusted } = await make(admin, { untrusted: true, grants: ['*:*'] });
    expect(untrusted).toBe(true);
    expect(await as(key).add({ user_id: 'ana', content: 'tea' })).toMatchObject({
      ...{ 'x-omp-origin': { key: 'editor', via: 'http' }, 'x-omp-untrusted': true },
    });
    expectError(await as(key).ask('/keys'), 'scope_denied');
  });

  it('[Decision 54] is told that a key is untrusted, and makes no such key with admin:*', async () => {
    const { as, admin } = await openAdmin();
    const old = newKey();
    const kept = { name: 'old', grants: ['admin:*'], users: null, expires_at: null, untrusted: true };
    await keys.create({ id: old.id, hash: old.hash, ...kept }, call);
    const denied = await as(old.key).ask('/keys');
    expectError(denied, 'scope_denied');
    expect(denied.text).toContain('untrusted');
    const body = { name: 'new', grants: ['read:*', 'admin:*'], untrusted: true };
    const rejected = await admin.tell('POST', '/keys', body);
    expectError(rejected, 'invalid_request');
    expect(rejected.text).toContain('admin:* does nothing for an untrusted key');
    expect(await storedNames()).toEqual(['old']);
  });

  it('[Decision 62] the receipt of an erase counts the keys and webhooks that name the user, and says what to do', async () => {
    const webhooks = { list: async () => [{ users: null }, { users: ['ana'] }, { users: ['cleo'] }] };
    const { as, admin } = await openAdmin(webhooks as unknown as Webhooks);
    const { key } = await make(admin, { name: 'eraser', grants: ['delete:*'] });
    await revoke(admin, (await make(admin, { name: 'revoked', users: ['ana', 'ben'] })).id);
    await make(admin, { name: 'of another', users: ['cleo'] });
    const keptOf = async (user: string) => (await as(key).receipt(user)).kept;
    const kept = await keptOf('ana');
    expect(kept).toContainEqual({ what: 'api_keys', count: 1, why: expect.stringContaining('DELETE /keys/{id}') });
    expect(kept).toContainEqual({ what: 'webhooks', count: 1, why: expect.stringContaining('DELETE /webhooks/{id}') });
    expect((await keptOf('ben')).map(({ what }) => what)).toContain('api_keys');
    expect((await keptOf('nobody')).map(({ what }) => what)).not.toContain('api_keys');
  });

  it('[Decision 54] gets no key of a store that drops the mark', async () => {
    const dropping: KeyStore = { ...keys, create: ({ untrusted: _, ...key }, by) => keys.create(key, by) };
    const key = { ...newKey(), name: 'crawler', grants: ['*:*'], users: null, expires_at: null };
    await expect(storeKey(dropping, { ...key, untrusted: true }, call)).rejects.toMatchObject({
      code: 'unsupported_capability',
    });
    expect((await keys.find(key.id, call))?.revoked_at).not.toBeNull();
    const { untrusted } = await storeKey(keys, { ...key, ...newKey(), name: 'other', untrusted: true }, call);
    expect(untrusted).toBe(true);
  });

  it('revokes a key also for a request that waits for changes', async () => {
    const { as, admin, followers } = await openAdmin();
    const [revoked, other] = [await make(admin), await make(admin, { name: 'other' })];
    const poll = as(revoked.key).ask('/changes', { after: 'now', wait: 60 });
    await eventually(() => expect(followers()).toBe(1));
    await revoke(admin, revoked.id);
    advance(5_000);
    await as(other.key).add({ user_id: 'ana', content: 'tea' });
    expectError(await poll, 'unauthorized');
  });

  it('may make keys with any grants, but reads and changes no memory', async () => {
    const { as, admin } = await openAdmin();
    const { id } = await as((await make(admin, { name: 'all', grants: ['*:*'] })).key).add({
      user_id: 'u',
      content: 'x',
    });
    // test/access has the other verbs.
    expectError(await admin.ask(`/memories/${id}`), 'scope_denied');
    const second = as((await make(admin, { name: 'second admin', grants: ['admin:*'], users: ['u'] })).key);
    expect((await listed(second)).items.map(({ name }) => name).sort()).toEqual(['all', 'second admin']);
  });

  it('cannot revoke itself, by id or by name, nor a key that is not stored', async () => {
    const { as, admin } = await openAdmin();
    const own = await make(admin, { name: 'k3j2h1g0f9e8', grants: ['admin:*'] });
    const client = as(own.key);
    const refused = await revoke(client, own.id);
    expectError(refused, 'scope_denied');
    expect(refused.text).toContain('omp-gateway keys revoke');
    for (const id of [own.name, 'unknown00000', own.key, '\0', 'x'.repeat(600)]) {
      expectError(await revoke(client, id), 'not_found');
    }
    expect((await keys.find(own.id, call))?.revoked_at).toBeNull();
    expect((await revoke(admin, own.id)).status).toBe(200);
  });

  it('that was revoked makes no key, even while it is still accepted', async () => {
    const { as, admin } = await openAdmin();
    const own = await make(admin, { grants: ['admin:*', 'read:*'] });
    const client = as(own.key);
    await listed(client);
    await keys.revoke(own.id, call);
    // From the cache of the gateway.
    expect((await client.ask('/memories', { user_id: 'u' })).status).toBe(200);
    const reply = await client.tell('POST', '/keys', { name: 'successor', grants: ['admin:*'] });
    expectError(reply, 'unauthorized');
    expectError(await client.ask('/keys'), 'unauthorized');
    expectError(await revoke(client, 'unknown00000'), 'unauthorized');
    expect(await storedNames()).toEqual(['editor']);
  });

  it('lists page by page, newest first', async () => {
    const { admin } = await openAdmin();
    for (const name of ['one', 'two', 'three']) await make(admin, { name });
    // The clock of the embedded Postgres counts milliseconds: keys of the same one have no order but their ids.
    await store.sql(
      `update ${store.names.apiKeys} set created_at = created_at + array_position('{one,two,three}', name) * interval '1 s'`,
    );
    const first = await listed(admin, { limit: 2 });
    expect(first.items.map(({ name }) => name)).toEqual(['three', 'two']);
    const { items, next_cursor } = await listed(admin, { limit: 2, cursor: first.next_cursor ?? '' });
    expect([items.map(({ name }) => name), next_cursor]).toEqual([['one'], null]);
    expect((await listed(admin, { limit: 3 })).next_cursor).toBeNull();
    for (const query of [{ limit: 0 }, { limit: 101 }, { cursor: 'x' }]) {
      expectError(await admin.ask('/keys', query), 'invalid_request');
    }
  });
});

describe('[Decision 41] nobody else', () => {
  it('makes a key: not a caller of an open gateway, nor a key for all memories', async () => {
    const { as, key } = await openGateway(['*:*']);
    const { as: open } = await openGateway();
    for (const client of [open(), as(key)]) {
      const reply = await client.tell('POST', '/keys', { name: 'mine', grants: ['admin:*'] });
      expectError(reply, 'scope_denied');
      expect(reply.text).toContain('omp-gateway keys create NAME --grant \\"admin:*\\"');
    }
    expect(await storedNames()).toEqual([]);
  });

  it('and nobody at all where the backend stores no keys', async () => {
    const { client, close } = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
    for (const reply of [
      await client.ask('/keys'),
      await client.tell('POST', '/keys', { name: 'mine', grants: ['read:*'] }),
      await revoke(client, 'k3j2h1g0f9e8'),
    ]) {
      expectError(reply, 'unsupported_capability');
      expect(reply.text).toContain('--print');
    }
    await close();
  });
});

describe('[Decision 41] a new key', () => {
  it.each<[string, Fields]>([
    ['name', { name: '' }],
    ['name', { name: 'a\nb' }],
    ['name', { name: undefined }],
    ['grants', { grants: [] }],
    ['grants', { grants: undefined }],
    ['grants', { grants: Array.from({ length: 33 }, () => 'read:*') }],
    ['grants.0', { grants: ['all'] }],
    ['grants.1', { grants: ['read:*', 'admin:x'] }],
    ['users', { users: [] }],
    ['users', { users: Array.from({ length: 101 }, (_, i) => `u${i}`) }],
    ['users.0', { users: [' '] }],
    ['expires_at', { expires_at: '2001-01-01' }],
    ['expires_at', { expires_at: '90d' }],
    ['expires_at', { expires_at: '2999-01-01T00:00:00' }],
    // Ignored, it would be a key for every user.
    ['user', { user: 'ana' }],
  ])('needs a valid %s: %j', async (field, fields) => {
    const { admin } = await openAdmin();
    const reply = await admin.tell('POST', '/keys', { name: 'editor', grants: ['read:*'], ...fields });
    expectError(reply, 'invalid_request');
    expect((reply.body as { error: { message: string } }).error.message).toContain(field);
    expect(await storedNames()).toEqual([]);
  });

  it('needs a name of its own, and no users or expiry', async () => {
    const { admin } = await openAdmin();
    const made = await make(admin, { users: null, expires_at: null });
    expect(made).toMatchObject({ users: null, expires_at: null });
    expectError(await admin.tell('POST', '/keys', { name: 'editor', grants: ['read:*'] }), 'invalid_request');
    await revoke(admin, made.id);
    expectError(await admin.tell('POST', '/keys', { name: 'editor', grants: ['read:*'] }), 'invalid_request');
  });
});

it('[Decision 41] [Decision 11] what was done with keys is in the audit log, with the id of the key in the log, and no secret anywhere', async () => {
  const { admin, log, flush } = await openAdmin();
  await store.sql(`delete from ${store.names.auditLog}`);
  const { id, key } = await make(admin);
  await listed(admin);
  await revoke(admin, id);
  await revoke(admin, 'unknown00000');
  await flush();
  const entries = await store.sql(`select * from ${store.names.auditLog} order by seq`);
  const entry = { app: 'configured', user_id: null, memory_id: null, scope: null };
  expect(entries).toMatchObject([
    { ...entry, action: 'create_key', outcome: 'ok' },
    { ...entry, action: 'list_keys', outcome: 'ok' },
    { ...entry, action: 'revoke_key', outcome: 'ok' },
    { ...entry, action: 'revoke_key', outcome: 'not_found' },
  ]);
  const line = { level: 'info', fields: { app: 'configured', key_id: id, request_id: expect.any(String) } };
  expect(log.lines.filter(({ message }) => message.startsWith('an API key'))).toEqual([
    { ...line, message: 'an API key was created' },
    { ...line, message: 'an API key was revoked' },
  ]);
  const written = JSON.stringify([entries, log.lines]);
  expect(written).not.toContain(key.slice(17));
  expect(written).not.toContain(hashOf(key));
});
