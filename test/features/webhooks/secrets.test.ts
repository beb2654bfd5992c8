import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { createVault, newSecret } from '../../../src/features/webhooks/secrets.ts';
import { signedHeaders } from '../../../src/features/webhooks/signature.ts';

const message = { id: 'msg_1', body: '{"type":"memory.add","data":{"scope":"größe/☃"}}' };

it('[Decision 52] the official library accepts a signature, and rejects what was changed', () => {
  const secret = newSecret();
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const now = Date.now();
  const headers = signedHeaders(message, [secret], now);
  const webhook = new Webhook(secret);
  expect(webhook.verify(message.body, headers)).toEqual(JSON.parse(message.body));
  expect(headers['webhook-signature']).toBe(webhook.sign(message.id, new Date(now), message.body));
  for (const [body, changed] of [
    [`${message.body} `, {}],
    [message.body, { 'webhook-id': 'msg_2' }],
    [message.body, { 'webhook-timestamp': String(Math.floor(now / 1_000) - 1) }],
    [message.body, signedHeaders(message, [newSecret()], now)],
    [message.body, signedHeaders(message, [secret], now - 3_600_000)],
  ] as const) {
    expect(() => webhook.verify(body, { ...headers, ...changed })).toThrow();
  }
});

it('[Decision 52] with two secrets, a receiver that knows either accepts', () => {
  const [older, newer] = [newSecret(), newSecret()];
  const headers = signedHeaders(message, [newer, older], Date.now());
  for (const secret of [older, newer]) expect(new Webhook(secret).verify(message.body, headers)).toBeDefined();
  expect(() => new Webhook(newSecret()).verify(message.body, headers)).toThrow();
});

it('[Decision 52] a sealed secret opens with the same key for the same webhook only', () => {
  const [vault, other] = [createVault('k'.repeat(32)), createVault('x'.repeat(32))];
  const secret = newSecret();
  const sealed = vault.seal('wh_1', secret);
  expect(vault.open('wh_1', sealed)).toBe(secret);
  expect(createVault('k'.repeat(32)).open('wh_1', sealed)).toBe(secret);
  expect(vault.seal('wh_1', secret)).not.toBe(sealed);
  for (const part of [secret, secret.slice(6), Buffer.from(secret.slice(6), 'base64').toString('base64url')]) {
    expect(sealed).not.toContain(part);
  }
  expect(() => other.open('wh_1', sealed)).toThrow();
  expect(() => vault.open('wh_2', sealed)).toThrow();
  for (const damaged of ['', 'x', sealed.slice(0, -4), `${sealed.slice(0, -1)}${sealed.endsWith('A') ? 'B' : 'A'}A`]) {
    expect(() => vault.open('wh_1', damaged)).toThrow();
  }
});
