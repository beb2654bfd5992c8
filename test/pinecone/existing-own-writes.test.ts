import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { post } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, type Subject } from '../support/subject.ts';
import { change, fill, openExistingSubject } from './existing-subject.ts';

const namespace = 'docs';
const OPTIONS = {
  preset: 'langchain',
  namespace,
  created_field: 'created',
  updated_field: 'changed',
  tags_field: 'labels',
  writable: true,
};

let server: Pinecone;
let subject: Subject;
beforeAll(async () => {
  server = await startPinecone();
  subject = await openExistingSubject(server, OPTIONS);
});
afterEach(() => server.lag({}));
afterAll(async () => {
  await subject.close();
  await server.close();
});
const held = () => server.lag({ held: true });

/** What the user's list and search show. */
async function shown(user_id: string, by: Subject = subject) {
  const { items } = await by.client.list({ user_id });
  const hits = await by.client.search({ user_id, q: 'green tea' });
  return { list: items.map(({ content }) => content), search: hits.map(({ memory }) => memory.content) };
}

describe('while Pinecone shows nothing of what was written', () => {
  it('get, list and search show what was added, in order', async () => {
    const user_id = freshUser();
    await held();
    const coffee = await subject.client.add({ user_id, content: 'black coffee' });
    const tea = await subject.client.add({ user_id, content: 'green tea', tags: ['home'] });
    expect(await subject.client.get(tea.id)).toEqual(tea);
    expect(await shown(user_id)).toEqual({
      list: ['green tea', 'black coffee'],
      search: ['green tea', 'black coffee'],
    });
    const [best] = await subject.client.search({ user_id, q: 'green tea' });
    expect(best).toMatchObject({ memory: tea, score: expect.closeTo(1, 3) });
    expect((await subject.client.list({ user_id, tag: 'home' })).items).toEqual([tea]);
    expect((await subject.client.list({ user_id, tag: 'work' })).items).toEqual([]);
    expect(await shown(freshUser())).toEqual({ list: [], search: [] });
    const first = await subject.client.list({ user_id, limit: 1 });
    const second = await subject.client.list({ user_id, limit: 1, cursor: first.next_cursor as string });
    expect([...first.items, ...second.items]).toEqual([tea, coffee]);
    await server.settle();
    expect(await shown(user_id)).toEqual({
      list: ['green tea', 'black coffee'],
      search: ['green tea', 'black coffee'],
    });
  });

  it('a patch finds what was added, and the patch before it', async () => {
    const user_id = freshUser();
    await held();
    const { id } = await subject.client.add({ user_id, content: 'black coffee' });
    await subject.client.update(id, { content: 'green tea' });
    await subject.client.update(id, { tags: ['home'] });
    // Back to what Pinecone still shows: a change all the same.
    await subject.client.update(id, { content: 'black coffee' });
    expect(await subject.client.get(id)).toMatchObject({ content: 'black coffee', tags: ['home'] });
    await subject.client.update(id, { content: 'green tea' });
    await server.settle();
    const other = await openExistingSubject(server, OPTIONS);
    expect(await other.client.get(id)).toMatchObject({ content: 'green tea', tags: ['home'] });
    expect(await shown(user_id, other)).toEqual({ list: ['green tea'], search: ['green tea'] });
    await other.close();
  });

  it('what was deleted does not come back', async () => {
    const user_id = freshUser();
    await fill(server, namespace, [
      { id: `${user_id}/a`, text: 'green tea', metadata: { text: 'green tea', user_id } },
      { id: `${user_id}/b`, text: 'black coffee', metadata: { text: 'black coffee', user_id } },
    ]);
    await held();
    const id = `${user_id}/a`;
    await subject.client.remove(id);
    const { ask, tell, byId } = subject.client;
    expectError(await ask(byId(id)), 'not_found');
    expectError(await tell('PATCH', byId(id), { content: 'x' }), 'not_found');
    expectError(await tell('DELETE', byId(id)), 'not_found');
    expect(await shown(user_id)).toEqual({ list: ['black coffee'], search: ['black coffee'] });
    await server.settle();
    expect(await shown(user_id)).toEqual({ list: ['black coffee'], search: ['black coffee'] });
    expect(Object.keys(await server.records(namespace))).not.toContain(id);
  });

  it('what was patched ranks by its new content', async () => {
    const user_id = freshUser();
    await fill(server, namespace, [
      { id: `${user_id}/a`, text: 'green tea', metadata: { text: 'green tea', user_id } },
      { id: `${user_id}/b`, text: 'a red van', metadata: { text: 'a red van', user_id } },
      { id: `${user_id}/c`, text: 'black coffee', metadata: { text: 'black coffee', user_id } },
    ]);
    await held();
    await subject.client.update(`${user_id}/a`, { content: 'gardening' });
    await subject.client.update(`${user_id}/b`, { content: 'green tea' });
    await subject.client.update(`${user_id}/c`, { tags: ['home'] });
    const hits = await subject.client.search({ user_id, q: 'green tea', limit: 1 });
    expect(hits.map(({ memory }) => memory.content)).toEqual(['green tea']);
    const all = await subject.client.search({ user_id, q: 'black coffee' });
    expect(all[0]).toMatchObject({ memory: { tags: ['home'] }, score: expect.closeTo(1, 3) });
    expect(all).toHaveLength(3);
  });
});

describe('writes that meet those of the owner', () => {
  const add = async () => {
    const user_id = freshUser();
    const id = `${user_id}/a`;
    await fill(server, namespace, [{ id, text: 'green tea', metadata: { text: 'green tea', user_id, page: 1 } }]);
    return id;
  };

  it('a patch keeps what the owner changed in other keys', async () => {
    const id = await add();
    await subject.client.update(id, { tags: ['home'] });
    await change(server, namespace, id, { page: 2, seen: true });
    await subject.client.update(id, { content: 'black coffee' });
    expect((await server.records(namespace))[id]?.metadata).toMatchObject({
      text: 'black coffee',
      labels: ['home'],
      page: 2,
      seen: true,
    });
  });

  it('a patch does not bring back what the owner deleted', async () => {
    const id = await add();
    await server.lag({ fetchMs: 3_600_000 });
    await post(server, '/vectors/delete', { ids: [id], namespace });
    await subject.client.update(id, { content: 'black coffee' });
    expect(Object.keys(await server.records(namespace))).not.toContain(id);
  });

  it('with nothing remembered, what Pinecone shows counts', async () => {
    const forgetful = await openExistingSubject(server, { ...OPTIONS, settle_ms: 0 });
    const id = await add();
    await forgetful.client.update(id, { content: 'black coffee' });
    await change(server, namespace, id, { text: 'gardening' });
    expect((await forgetful.client.get(id)).content).toBe('gardening');
    await post(server, '/vectors/delete', { ids: [id], namespace });
    expectError(await forgetful.client.ask(forgetful.client.byId(id)), 'not_found');
    await forgetful.close();
  });

  it('a write that failed is not shown', async () => {
    const id = await add();
    const user_id = freshUser();
    for (const operation of ['update', 'delete', 'upsert'] as const) {
      await server.fail({ operation, kind: '503', times: 0 });
    }
    const { tell, byId } = subject.client;
    expectError(await tell('PATCH', byId(id), { content: 'black coffee' }), 'provider_error');
    expectError(await tell('DELETE', byId(id)), 'provider_error');
    expectError(await tell('POST', '/memories', { user_id, content: 'black coffee' }), 'provider_error');
    await server.clearFaults();
    expect((await subject.client.get(id)).content).toBe('green tea');
    expect(await shown(user_id)).toEqual({ list: [], search: [] });
  });
});
