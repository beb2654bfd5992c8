import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore, pagesOf } from '../../src/move/store.ts';
import { openSubject, type Subject } from '../support/subject.ts';

const FILTERS = { users: [], tags: [], vectors: false } as const;

it('[Decision 43] says once that a request is sent again, until another one succeeds', async () => {
  const subject = await openSubject({ provider: 'memory', options: {} });
  const answers: (Response | Error)[] = [];
  const troubles: string[] = [];
  const { client } = await openStore('that store', {
    url: 'http://store',
    async fetch(url, init) {
      const next = answers.shift();
      if (next instanceof Error) throw next;
      return next ?? subject.app.request(`${url}`, init, {});
    },
    onRetry: (trouble) => troubles.push(trouble),
  });
  const failing = () => new Response('', { status: 502, headers: { 'retry-after': '0' } });
  answers.push(failing(), failing());
  await client.capabilities();
  answers.push(new TypeError('fetch failed'));
  await client.capabilities();
  expect(troubles).toEqual(['answers 502', 'does not answer']);
  await subject.close();
});

/** Other implementations of the protocol, and mapped tables, have no export. */
describe('a store without an export', () => {
  let subject: Subject;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    for (let n = 0; n < 12; n++) await subject.client.add({ user_id: `user ${n % 3}`, content: `fact ${n}` });
  });
  afterAll(() => subject.close());
  const open = (features: object) =>
    openStore('that store', {
      url: 'http://store',
      fetch: async (url, init) => {
        const response = await subject.app.request(`${url}`, init, {});
        if (!`${url}`.endsWith('/capabilities')) return response;
        const described = (await response.json()) as { features: object };
        return Response.json({ ...described, features: { ...described.features, export: false, ...features } });
      },
    });
  const contents = async (features: object, users: readonly string[] = []) => {
    const found: string[] = [];
    for await (const { memories } of pagesOf(await open(features), { ...FILTERS, users })) {
      found.push(...memories.map(({ content }) => content));
    }
    return found.sort();
  };
  const all = (wanted: (n: number) => boolean) =>
    Array.from({ length: 12 }, (_, n) => n)
      .filter(wanted)
      .map((n) => `fact ${n}`)
      .sort();

  it('is read by the lists of its users', async () => {
    expect(await contents({})).toEqual(all(() => true));
  });

  it('is read by the lists of the users that are named, if it cannot list them', async () => {
    expect(await contents({ users: false }, ['user 1', 'user 2'])).toEqual(all((n) => n % 3 > 0));
    await expect(contents({ users: false })).rejects.toThrow('that store cannot list its users; name them with --user');
  });
});
