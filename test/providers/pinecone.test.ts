import { expect, it, onTestFinished } from 'vitest';
import pinecone from '../../providers/pinecone/index.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import type { PineconeOptions } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { FULL } from '../support/full.ts';
import { openPineconeSubject, pineconeBackend } from '../support/pinecone-server.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { documentedResult } from './documented.ts';

const EMULATOR = { apiVersion: '2025-01', lsn: false } as const;
/** Hardly any read sees the write before it; the gateway looks once and does not wait. */
const LATE = { lagWrites: 7 } as const;
const LATE_OPTIONS = { layout: 'per-user', consistency_wait_ms: 0 } as const;

const openedFor = async (server: PineconeOptions, options: object) => {
  const subject = await openPineconeSubject(server, options);
  onTestFinished(subject.close);
  return subject.client;
};

it('[Decision 24] [SPEC Errors payload_too_large] a memory must fit into the metadata of a record, all fields together', async () => {
  const client = await openedFor({}, { layout: 'single' });
  const user_id = freshUser();
  const fields = (length: number) => ({ user_id, content: 'tea', 'x-note': 'n'.repeat(length) });
  const { id } = await client.add(fields(37_000));
  const rejected = [
    await client.tell('POST', '/memories', fields(38_000)),
    await client.tell('PATCH', client.byId(id), { 'x-more': 'n'.repeat(2_000) }),
  ];
  for (const reply of rejected) expect(expectError(reply, 'payload_too_large').message).toMatch(/38,?000/);
  expect(await client.get(id)).not.toHaveProperty('x-more');
  expect((await client.list({ user_id })).items).toHaveLength(1);
});

it('[Decision 23] has no tokens if the service has no sequence numbers', async () => {
  const { headers } = await (await openedFor(EMULATOR, { layout: 'sharded' })).tell('POST', '/memories', {
    user_id: freshUser(),
    content: 'tea',
  });
  expect(headers.get('x-consistency-token')).toBeNull();
});

it('[Decision 23] a response says that it may lack what the token names', async () => {
  const { ask, tell } = await openedFor(LATE, LATE_OPTIONS);
  const user_id = freshUser();
  const added = await tell('POST', '/memories', { user_id, content: 'tea' });
  const token = added.headers.get('x-consistency-token');
  expect(token).toMatch(/^[\w-]+$/);
  const { id } = added.body as WireMemory;
  for (const path of ['/memories', '/memories/search']) {
    const reply = await ask(path, { user_id, q: 'tea' }, { 'x-consistency-token': String(token) });
    expect(reply.headers.get('x-consistency'), path).toBe('behind');
    // This gateway wrote it.
    expect(reply.text).toContain(id);
  }
});

const LABEL = 'pinecone, all users in one namespace';
providerTests(pinecone, () => pineconeBackend({}, { layout: 'single' }), LABEL);
documentedResult(LABEL);
if (FULL) {
  providerTests(
    pinecone,
    () => pineconeBackend(EMULATOR, { layout: 'sharded' }),
    'pinecone, sharded, with the protocol of the emulator',
  );
  providerTests(
    pinecone,
    () => pineconeBackend(LATE, LATE_OPTIONS),
    'pinecone, a namespace for each user, shown 7 writes late',
  );
}
