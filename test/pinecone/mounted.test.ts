import { expect, it, onTestFinished } from 'vitest';
import { startPinecone } from '../pinecone-server/start.ts';
import { type Mount, openMounted } from '../support/mounted.ts';
import { freshUser, openSubject } from '../support/subject.ts';
import { fill, openMappedSubject } from './mapped-subject.ts';

const namespace = 'notes';
const NOTES = { preset: 'custom', namespace, text_field: 'note', user_field: 'owner', writable: true };
const memory: Mount['open'] = (options) =>
  openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options });

it.each(['mounted below memory', 'with memory mounted below'])(
  '[Decision 48] [Decision 49] a mapped index, %s, is one of the stores',
  async (place) => {
    const server = await startPinecone();
    onTestFinished(server.close);
    const mapped: Mount['open'] = (options) => openMappedSubject(server, NOTES, options);
    const [root, below] = place.startsWith('mounted') ? [memory, mapped] : [mapped, memory];
    const mount = { name: 'below', mount: 'below', open: below };
    const { client, close } = await openMounted(root, [mount], { mode: 'vector' });
    onTestFinished(close);
    const user_id = freshUser();
    await fill(server, namespace, [
      { id: 'theirs', text: 'tea of others', metadata: { note: 'tea of others', owner: user_id } },
    ]);

    const [own, other] = [
      await client.add({ user_id, content: 'tea of the root' }),
      await client.add({ user_id, content: 'tea below', scope: 'below' }),
    ];
    expect(own.id.startsWith('~')).toBe(false);
    expect(other.id).toMatch(/^~below~/);
    const contents = ['tea below', 'tea of others', 'tea of the root'];
    expect((await client.list({ user_id })).items.map(({ content }) => content).sort()).toEqual(contents);
    const hits = await client.search({ user_id, q: 'tea', limit: 9 });
    expect(hits.map((hit) => hit.memory.content).sort()).toEqual(contents);

    await client.update(other.id, { content: 'coffee below' });
    expect(await client.get(other.id)).toMatchObject({ content: 'coffee below', scope: 'below' });
    expect((await client.list({ user_id, scope: 'below' })).items.length).toBe(below === mapped ? 2 : 1);
    await client.remove(own.id);
    await client.remove(other.id);
    const theirs = (await client.list({ user_id })).items;
    expect(theirs.map(({ id, scope }) => [id, scope])).toEqual([
      below === mapped ? ['~below~theirs', 'below'] : ['theirs', null],
    ]);
  },
);
