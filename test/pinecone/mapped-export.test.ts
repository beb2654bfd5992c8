import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRetention } from '../../src/features/retention/retention.ts';
import { exported } from '../mapped/exported.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { call, refTo } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';
import { openGateway } from './gateways.ts';
import { change, fill, openMappedSubject } from './mapped-subject.ts';

let server: Pinecone;
beforeAll(async () => {
  server = await startPinecone();
});
afterEach(() => server.clearFaults());
afterAll(() => server.close());

const NOTES = {
  ...{ preset: 'custom', text_field: 'note', user_field: 'owner', created_field: 'written', updated_field: 'changed' },
  writable: true,
};
const note = (id: string, owner: unknown, more: object = {}) => ({
  id,
  text: id,
  metadata: { note: `note ${id}`, owner, ...more } as Record<string, unknown>,
});
const open = (namespace: string, log = recordingLog()) =>
  openGateway(server, { options: { ...NOTES, namespace }, log });
const idsIn = (memories: readonly { id: string }[]) => memories.map(({ id }) => id);

describe('[Decision 43] the memories of a mapped index', () => {
  it('come once each, in the order of their ids, between records that are none, and without what the gateway has deleted', async () => {
    const namespace = 'walk';
    const both = ['ana', 'ben'];
    await fill(server, namespace, [
      ...[note('c', 'ana'), note('a', 'ben'), note('e', 'ana'), note('g', 'ana')],
      ...[note('b', both), note('d', ''), note('f', 'ana', { note: '' }), note('h', both)],
    ]);
    const { client, close } = await openMappedSubject(server, { ...NOTES, namespace });
    expect(idsIn(await exported(client))).toEqual(['a', 'c', 'e', 'g']);
    expect(idsIn(await exported(client, { limit: 3 }))).toEqual(['a', 'c', 'e', 'g']);
    expect(idsIn(await exported(client, { user_id: 'ana' })).sort()).toEqual(['c', 'e', 'g']);
    expect(idsIn(await exported(client, { id: ['g', 'b', 'no', 'a'] })).sort()).toEqual(['a', 'g']);
    expect(idsIn(await exported(client, { id: ['g', 'a'], user_id: 'ben' }))).toEqual(['a']);
    const [first] = await exported(client, { id: 'a', vectors: 'true' });
    expect(Buffer.from(first?.vector ?? '', 'base64')).toHaveLength(64 * 4);
    // The index still shows them as they were.
    await server.lag({ writes: 1_000 });
    await client.remove('e');
    await client.update('g', { content: 'changed' });
    expect((await exported(client)).map(({ content }) => content)).toEqual(['note a', 'note c', 'changed']);
    await server.lag({});
    await close();
  });

  it('of one user are on the page of their record, also those that were just changed or deleted: a later page may be asked for when that is forgotten', async () => {
    const namespace = 'places';
    await fill(server, namespace, [note('a', 'ana'), note('b', 'ana'), note('c', 'ana')]);
    const provider = await open(namespace);
    await server.lag({ writes: 1_000 });
    await provider.update?.({ ref: refTo('a'), patch: { content: 'changed' } }, call);
    await provider.delete?.(refTo('b'), call);
    const contents: string[][] = [];
    for (let after: string | undefined, more = true; more; more = after !== undefined) {
      const query = { user_id: 'ana', vectors: false, limit: 1, max_bytes: 1e6, ...(after !== undefined && { after }) };
      const part = await provider.export?.(query, call);
      contents.push((part?.items ?? []).map(({ memory }) => memory.content));
      after = part?.next;
    }
    await server.lag({});
    expect(contents.slice(0, 2)).toEqual([['changed'], []]);
    await provider.close();
  });

  it('changed since a time are those whose time says so, and without times the request is rejected', async () => {
    const namespace = 'since';
    await fill(server, namespace, [
      note('a', 'ana', { changed: '2024-01-01' }),
      note('b', 'ana', { written: '2024-01-02' }),
      note('c', 'ana'),
    ]);
    const { client, close } = await openMappedSubject(server, { ...NOTES, namespace });
    expect(idsIn(await exported(client, { since: '2024-01-02' }))).toEqual(['b']);
    await close();
    const timeless = { ...NOTES, namespace, created_field: undefined, updated_field: undefined };
    const bare = await openMappedSubject(server, timeless);
    const { message } = expectError(
      await bare.client.ask('/export', { since: '2024-01-01' }),
      'unsupported_capability',
    );
    expect(message).toContain('since: the index has no times');
    expect(idsIn(await exported(bare.client))).toEqual(['a', 'b', 'c']);
    await bare.close();
  });

  it('of one user are read by all ids where the index is too old to be asked for a user', async () => {
    const old = await startPinecone({ apiVersion: '2025-01', lsn: false });
    await fill(old, 'n', [note('a', 'ana'), note('b', 'ben'), note('c', 'ana')]);
    const { client, close } = await openMappedSubject(old, { ...NOTES, namespace: 'n' });
    expect(idsIn(await exported(client, { user_id: 'ana' }))).toEqual(['a', 'c']);
    await close();
    await old.close();
  });

  it.each(['400', '404', '500', 'garbage'] as const)(
    'are not exported where ids cannot be listed, and a warning says so: %s',
    async (kind) => {
      const log = recordingLog();
      await server.fail({ operation: 'list', kind, times: 0 });
      const provider = await open('pods', log);
      expect(provider.export).toBeUndefined();
      expect(log.lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('cannot list its ids') }]);
      await provider.close();
    },
  );

  it('[Decision 25] are not looked for where the index does not answer: the gateway does not start', async () => {
    await server.fail({ operation: 'list', kind: 'reset', times: 0 });
    await expect(open('pods')).rejects.toThrow('cannot be reached');
  });

  it('fill pages up to the limit in bytes, with at least one record', async () => {
    const namespace = 'bytes';
    await fill(
      server,
      namespace,
      ['a', 'b', 'c', 'd'].map((id) => note(id, 'ana', { note: 'x'.repeat(30_000) })),
    );
    const provider = await open(namespace);
    for (const user_id of [undefined, 'ana'])
      for (const [max_bytes, length] of [[100_000, 3] as const, [1, 1] as const]) {
        const part = await provider.export?.({ user_id, vectors: false, limit: 10, max_bytes }, call);
        expect(part?.items).toHaveLength(length);
      }
    await provider.close();
  });
});

it('[Decision 60] retention on a mapped index deletes what is old, and keeps what changes meanwhile and what has no time', async () => {
  const namespace = 'retention';
  const written = new Date(Date.now() - 9 * 86_400_000).toISOString();
  await fill(server, namespace, [
    note('old', 'ana', { written }),
    note('changed', 'ana', { written }),
    note('timeless', 'ana'),
    note('none', '', { written }),
  ]);
  const provider = await open(namespace);
  const walk = provider.export as NonNullable<typeof provider.export>;
  const store: typeof provider = {
    ...provider,
    async export(query, own) {
      const part = await walk(query, own);
      await change(server, namespace, 'changed', { changed: new Date().toISOString() });
      return part;
    },
  };
  for await (const _ of createRetention([{ days: 7, by: 'updated_at' }]).pass({ store, dry_run: false }, call));
  expect(Object.keys(await server.records(namespace)).sort()).toEqual(['changed', 'none', 'timeless']);
  await provider.close();
});
