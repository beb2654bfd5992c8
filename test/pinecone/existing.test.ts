import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, type Subject } from '../support/subject.ts';
import { nodeMetadata, SHAPES } from './existing-records.ts';
import { documentedOptions, fill, openExistingSubject } from './existing-subject.ts';

let server: Pinecone;
beforeAll(async () => {
  server = await startPinecone();
});
afterAll(() => server.close());

describe.each(SHAPES)('an index of $preset, with the documented configuration', (shape) => {
  const { preset, id, created_at, updated_at, tags = [] } = shape;
  const { options, ...documented } = documentedOptions(preset);
  const namespace = `${preset}-shape`;
  const ana = freshUser();
  let subject: Subject;
  const memory = {
    id,
    content: 'ana likes green tea',
    user_id: ana,
    created_at,
    updated_at,
    ...(tags.length > 0 && { tags }),
  };

  beforeAll(async () => {
    await fill(server, namespace, [
      { id, text: memory.content, metadata: shape.metadata(ana, memory.content) },
      { id: `${id}-2`, text: 'ana drives a van', metadata: shape.metadata(ana, 'ana drives a van') },
      { id: `${id}-3`, text: memory.content, metadata: shape.metadata(freshUser(), memory.content) },
    ]);
    const { index_host: _, ...settings } = options;
    subject = await openExistingSubject(server, { ...settings, namespace });
  });
  afterAll(() => subject.close());

  it('the configuration is one that the gateway takes', () => {
    expect(documented).toEqual({ provider: 'pinecone', embedder: 'openai', warnings: [] });
    expect(options.preset).toBe(preset);
    expect(options.namespace).toBe({ haystack: 'default', custom: 'notes' }[preset] ?? '__default__');
  });

  it('[SPEC GET /memories/{id}] answers by the id of the owner, with no key that is not mapped', async () => {
    const answer = await subject.client.get(id);
    const present = Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== null));
    expect(present).toEqual({ ...memory, ...(tags.length === 0 && { tags: [] }), supersedes: [] });
  });

  it('[SPEC GET /memories/search] finds the text of the user, and of nobody else', async () => {
    const hits = await subject.client.search({ q: memory.content, user_id: ana });
    expect(hits.map((hit) => hit.memory.id)).toEqual([id, `${id}-2`]);
    expect(hits[0]).toMatchObject({ memory, score: expect.closeTo(1, 3) });
  });

  it('[SPEC GET /memories] lists the user, ties by id descending', async () => {
    const { items, next_cursor } = await subject.client.list({ user_id: ana });
    expect(items.map((item) => item.id)).toEqual([`${id}-2`, id]);
    expect(items[1]).toMatchObject(memory);
    expect(next_cursor).toBeNull();
    const first = await subject.client.list({ user_id: ana, limit: 1 });
    const second = await subject.client.list({ user_id: ana, limit: 1, cursor: first.next_cursor as string });
    expect([...first.items, ...second.items].map((item) => item.id)).toEqual([`${id}-2`, id]);
  });

  it('[SPEC Capabilities features] are those of this index', () => {
    const times = created_at !== '1970-01-01T00:00:00.000Z';
    const written = preset === 'custom' ? ['add', 'update', 'delete'] : [];
    expect(subject.capabilities.verbs.toSorted()).toEqual([...written, 'search', 'get', 'list', 'context'].sort());
    expect(subject.capabilities.features).toEqual({
      vector_search: true,
      keyword_search: false,
      graph_queries: false,
      temporal: times,
      scopes: 'none',
      max_content_length: preset === 'custom' ? 9_000 : null,
      supports_audit: false,
      supports_supersession: false,
      idempotency: false,
      tags: tags.length > 0,
      consistency_tokens: false,
    });
    expect(subject.capabilities.limits?.max_search_results).toBe(100);
  });

  it('[SPEC Errors unsupported_capability] what the index cannot do is refused by name', async () => {
    const { ask, tell, byId } = subject.client;
    if (preset !== 'custom') {
      const refused = await tell('POST', '/memories', { user_id: ana, content: 'x' });
      expect(expectError(refused, 'unsupported_capability').message).toContain('OMP_PINECONE_WRITABLE=true');
      expectError(await tell('PATCH', byId(id), { content: 'x' }), 'unsupported_capability');
      expectError(await tell('DELETE', byId(id)), 'unsupported_capability');
    }
    if (tags.length === 0) {
      for (const query of [{ scope: 'a/*' }, { tag: 'a' }]) {
        const error = expectError(await ask('/memories', { user_id: ana, ...query }), 'unsupported_capability');
        expect(error).toMatchObject({ provider: 'pinecone', message: expect.stringMatching(/^(scope|tag): /) });
      }
      const search = await ask('/memories/search', { user_id: ana, q: 'tea', scope: 'a' });
      expectError(search, 'unsupported_capability');
    }
    if (created_at.startsWith('1970')) {
      expectError(await ask('/memories', { user_id: ana, since: '2025-01-01' }), 'unsupported_capability');
    }
    expectError(await ask(byId('no such id')), 'not_found');
    expectError(await ask(byId('nosuchid')), 'not_found');
  });

  it('[SPEC Service capabilities] context is made of what search finds', async () => {
    const { text, citations } = await subject.client.context({ query: memory.content, user_id: ana });
    expect(text).toContain(memory.content);
    expect(citations[0]?.memory_id).toBe(id);
  });
});

describe('nodes of LlamaIndex', () => {
  it('keep their text as such, in a text resource, or long ago beside the node', async () => {
    const namespace = 'nodes';
    const user = freshUser();
    const nodes = {
      text: nodeMetadata(user, { text: 'as text' }),
      resource: nodeMetadata(user, { text_resource: { text: 'in a resource', mimetype: 'text/plain' } }),
      legacy: { user_id: user, text: 'beside' },
      both: { ...nodeMetadata(user, { text: '' }), text: 'beside an empty one' },
      broken: { user_id: user, _node_content: '{"text": "cut off', text: 'beside a broken one' },
      nothing: nodeMetadata(user, {}),
      null: { user_id: user, _node_content: 'null' },
      number: nodeMetadata(user, { text: 7 }),
    };
    const records = Object.entries(nodes).map(([id, metadata]) => ({ id, text: id, metadata }));
    await fill(server, namespace, records);
    const subject = await openExistingSubject(server, { preset: 'llamaindex', namespace });
    const { items } = await subject.client.list({ user_id: user });
    expect(Object.fromEntries(items.map(({ id, content }) => [id, content]))).toEqual({
      text: 'as text',
      resource: 'in a resource',
      legacy: 'beside',
      both: 'beside an empty one',
      broken: 'beside a broken one',
    });
    await subject.close();
    const named = await openExistingSubject(server, { preset: 'llamaindex', namespace, text_field: 'file_name' });
    expect((await named.client.get('text')).content).toBe('notes.md');
    await named.close();
  });
});
