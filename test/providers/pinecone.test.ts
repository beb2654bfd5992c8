import { expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import type { GetSubject } from '../conformance/subject.ts';
import { expectError } from '../support/expect-error.ts';
import { FULL } from '../support/full.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';

const metadataLimit = (subject: GetSubject) =>
  it('[Decision 24] [SPEC Errors payload_too_large] a memory must fit into the metadata of a record, all fields together', async () => {
    const { client } = subject();
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

const noTokens = (subject: GetSubject) =>
  it('[Decision 23] has no tokens if the service has no sequence numbers', async () => {
    const { headers } = await subject().client.tell('POST', '/memories', { user_id: freshUser(), content: 'tea' });
    expect(headers.get('x-consistency-token')).toBeNull();
  });

const behind = (subject: GetSubject) =>
  it('[Decision 23] a response says that it may lack what the token names', async () => {
    const { ask, tell } = subject().client;
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

conformance(
  'pinecone, all users in one namespace',
  (options) => openPineconeSubject({}, { layout: 'single' }, options),
  metadataLimit,
);
if (FULL) {
  conformance(
    'pinecone, sharded, with the protocol of the emulator',
    (options) => openPineconeSubject({ apiVersion: '2025-01', lsn: false }, { layout: 'sharded' }, options),
    noTokens,
  );
  // Hardly any read sees the write before it; the gateway looks once and does not wait.
  conformance(
    'pinecone, a namespace for each user, shown 7 writes late',
    (options) => openPineconeSubject({ lagWrites: 7 }, { layout: 'per-user', consistency_wait_ms: 0 }, options),
    behind,
  );
}
