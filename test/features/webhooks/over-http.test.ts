import { describe, expect, it } from 'vitest';
import type { Client, Fields } from '../../support/client.ts';
import { expectError } from '../../support/expect-error.ts';
import { openSubject } from '../../support/subject.ts';
import { call, openGateway, openMemoryStore, SECRET } from './gateway.ts';
import { openReceiver } from './receiver.ts';

interface Made {
  readonly id: string;
  readonly secret: string;
}

const openAdmin = async (options: Parameters<typeof openGateway>[1] = {}) => {
  const store = await openMemoryStore();
  const gateway = openGateway(store, options);
  return { ...gateway, store, admin: gateway.as('admin:*') };
};
const create = async (client: Client, fields: Fields): Promise<Made> => {
  const reply = await client.tell('POST', '/webhooks', fields);
  expect(reply.status, reply.text).toBe(201);
  return reply.body as Made;
};
const items = async (client: Client) => ((await client.ask('/webhooks')).body as { items: Made[] }).items;

describe('[Decision 52] an admin', () => {
  it('makes, lists, tests, rotates, resumes and deletes webhooks', async () => {
    const { admin } = await openAdmin();
    const receiver = await openReceiver();
    const { secret, ...made } = await create(admin, {
      url: receiver.url,
      users: ['ana'],
      scope: 'a/*',
      actions: ['add'],
    });
    expect(secret).toMatch(/^whsec_/);
    expect(made).toEqual({
      id: expect.stringMatching(/^wh_[0-9a-f]{24}$/),
      ...{ url: receiver.url, users: ['ana'], scope: 'a/*', actions: ['add'] },
      ...{ created_at: expect.any(String), state: 'active', cursor: expect.any(String), failing_since: null },
      ...{ undelivered: 0, previous_until: null, deliveries: [] },
    });
    expect(await items(admin)).toEqual([made]);

    const tested = await admin.tell('POST', `/webhooks/${made.id}/test`);
    expect(tested.body).toMatchObject({ type: 'webhook.test', outcome: 'delivered', status: 204 });
    expect(receiver.accepts(secret)).toBe(true);
    expect(JSON.parse(receiver.received[0]?.body ?? '')).toEqual({
      ...{ type: 'webhook.test', timestamp: expect.any(String), data: {} },
    });

    const rotated = await admin.tell('POST', `/webhooks/${made.id}/rotate`);
    expect(rotated.body).toMatchObject({ id: made.id, previous_until: expect.any(String) });
    expect((rotated.body as Made).secret).not.toBe(secret);
    expect((await admin.tell('POST', `/webhooks/${made.id}/resume`)).body).toMatchObject({ state: 'active' });
    expect((await admin.tell('POST', `/webhooks/${made.id}/resume?from=now`)).status).toBe(200);
    expectError(await admin.tell('POST', `/webhooks/${made.id}/resume?from=yesterday`), 'invalid_request');

    expect((await admin.tell('DELETE', `/webhooks/${made.id}`)).status).toBe(204);
    expect(await items(admin)).toEqual([]);
    expectError(await admin.tell('DELETE', `/webhooks/${'x'.repeat(600)}`), 'not_found');
    expectError(await admin.tell('DELETE', '/webhooks/%00'), 'not_found');
    for (const [method, path] of [
      ['DELETE', ''],
      ['POST', '/test'],
      ['POST', '/resume'],
      ['POST', '/rotate'],
    ] as const) {
      expectError(await admin.tell(method, `/webhooks/${made.id}${path}`), 'not_found');
    }
  });

  it('is told how a test ended that was not delivered', async () => {
    const { admin } = await openAdmin();
    const receiver = await openReceiver();
    receiver.react(() => 401);
    const { id } = await create(admin, { url: receiver.url });
    expect((await admin.tell('POST', `/webhooks/${id}/test`)).body).toMatchObject({ outcome: 'rejected', status: 401 });
  });

  it('makes at most 50', async () => {
    const { admin } = await openAdmin();
    for (let n = 0; n < 50; n++) await create(admin, { url: `https://example.com/${n}` });
    const reply = await admin.tell('POST', '/webhooks', { url: 'https://example.com/50' });
    expectError(reply, 'invalid_request');
    expect(reply.text).toContain('50');
    expect(await items(admin)).toHaveLength(50);
  });

  it.each<[string, Fields]>([
    ['url', {}],
    ['url', { url: 'nowhere' }],
    ['url', { url: 'http://example.com/' }],
    ['url', { url: 'https://user:pass@example.com/' }],
    ['url', { url: 'https://10.0.0.1/' }],
    ['url', { url: `https://example.com/${'x'.repeat(2_048)}` }],
    ['users', { url: 'https://example.com/', users: [] }],
    ['users', { url: 'https://example.com/', users: Array.from({ length: 101 }, (_, n) => `u${n}`) }],
    ['users.0', { url: 'https://example.com/', users: [' '] }],
    ['scope', { url: 'https://example.com/', scope: '' }],
    ['actions', { url: 'https://example.com/', actions: [] }],
    ['actions.0', { url: 'https://example.com/', actions: ['read'] }],
    // Ignored, it would be a webhook with the changes of every user.
    ['user', { url: 'https://example.com/', user: 'ana' }],
  ])('needs a valid %s: %j', async (field, fields) => {
    const { admin } = await openAdmin({ allow_private: false });
    const reply = await admin.tell('POST', '/webhooks', fields);
    expectError(reply, 'invalid_request');
    expect((reply.body as { error: { message: string } }).error.message).toContain(field);
    expect(await items(admin)).toEqual([]);
  });
});

it('[Decision 52] without OMP_WEBHOOK_SECRET there are none, and the answer says what is missing', async () => {
  const { client, capabilities, close } = await openSubject({
    ...{ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' },
  });
  expect(capabilities.features.webhooks).toBe(false);
  const reply = await client.ask('/webhooks');
  expectError(reply, 'unsupported_capability');
  expect(reply.text).toContain('OMP_WEBHOOK_SECRET');
  await close();
});

it('[Decision 52] [Decision 11] what was done is in the audit log and in the log, and no secret anywhere', async () => {
  const { admin, store, log, flush, find } = await openAdmin();
  const url = 'https://example.com/a-secret-path';
  const { id, secret } = await create(admin, { url });
  const rotated = (await admin.tell('POST', `/webhooks/${id}/rotate`)).body as Made;
  const stored = JSON.stringify(await find(id));
  const listed = (await admin.ask('/webhooks')).text;
  await admin.tell('POST', `/webhooks/${id}/resume`);
  await admin.tell('DELETE', `/webhooks/${id}`);
  await flush();
  const messages = log.lines.filter(({ fields }) => 'webhook_id' in fields).map(({ message }) => message);
  expect(messages).toEqual([
    'a webhook was created',
    'the secret of a webhook was rotated',
    'a webhook was resumed',
    'a webhook was deleted',
  ]);
  expect(log.lines[0]?.fields).toMatchObject({ webhook_id: id, request_id: expect.any(String) });
  for (const text of [stored, listed, JSON.stringify(log.lines)]) {
    for (const one of [secret, rotated.secret, SECRET]) {
      expect(text).not.toContain(one.replace('whsec_', '').slice(0, 20));
    }
  }
  expect(JSON.stringify(log.lines)).not.toContain('a-secret-path');
  expect(await store.webhooks?.list(call)).toEqual([]);
});
