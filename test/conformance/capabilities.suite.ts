import { describe, expect, it } from 'vitest';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import { type GetSubject, supports, testOf } from './subject.ts';

export const capabilitiesSuite = (subject: GetSubject) =>
  describe('capabilities', () => {
    const test = testOf(subject);

    it('[Decision 18] [SPEC Versioning 1] [SPEC Capabilities provider] answers the document, with our own flags', async () => {
      const { status, body } = await subject().client.ask('/capabilities');
      expect({ status, body }).toEqual({ status: 200, body: subject().capabilities });
      const { omp_version, provider, verbs, features, limits } = subject().capabilities;
      expect({ omp_version, provider }).toEqual({ omp_version: '0.1', provider: subject().provider.name });
      expect(provider).toMatch(/^[a-z][a-z0-9-]*$/);
      expect(verbs).toContain('get');
      const { scopes: _, max_content_length: __, graph_queries, ...flags } = features;
      expect(graph_queries).toBe(false);
      for (const [flag, value] of Object.entries(flags)) expect(value, flag).toBeTypeOf('boolean');
      expect(limits?.max_batch_size).toBeGreaterThan(0);
    });

    it('[Decision 18] [Decision 20] [Decision 40] our own features agree with verbs', () => {
      const { features } = subject().capabilities;
      expect(supports(subject(), 'context')).toBe(supports(subject(), 'search'));
      expect(features.multi_user).toBe(supports(subject(), 'search'));
      expect(features.current).toBe(supports(subject(), 'list') || supports(subject(), 'search'));
      expect(features.idempotency).toBe(subject().provider.idempotent);
    });

    const user_id = freshUser();
    const fields = { user_id, content: 'tea' };
    /** A request for each capability. */
    const REQUESTS: Readonly<Record<string, (client: ReturnType<GetSubject>['client']) => Promise<Reply>>> = {
      context: ({ tell }) => tell('POST', '/context', { user_id, query: 'tea' }),
      audit: ({ ask }) => ask('/audit', { user_id }),
      'list by scope': ({ ask }) => ask('/memories', { user_id, scope: 'a/*' }),
      'list since': ({ ask }) => ask('/memories', { user_id, since: '2024-01-01' }),
      'list until': ({ ask }) => ask('/memories', { user_id, until: '2024-01-01' }),
      'search since': ({ ask }) => ask('/memories/search', { user_id, q: 'a', since: '2024-01-01' }),
      'context until': ({ tell }) => tell('POST', '/context', { user_id, query: 'a', until: '2024-01-01' }),
      batch: ({ tell }) => tell('POST', '/memories/batch', { memories: [fields] }),
      'idempotent add': ({ tell }) => tell('POST', '/memories', fields, { 'idempotency-key': 'k' }),
      'idempotent batch': ({ tell }) =>
        tell('POST', '/memories/batch', { memories: [fields] }, { 'idempotency-key': 'k' }),
    };

    it('[SPEC Errors unsupported_capability] [Decision 24] rejects what is not declared', async () => {
      const { verbs, features } = subject().capabilities;
      const declared: Readonly<Record<string, boolean>> = {
        'list by scope': verbs.includes('list') && features.scopes !== 'none',
        'list since': verbs.includes('list') && features.temporal,
        'list until': verbs.includes('list') && features.temporal,
        'search since': verbs.includes('search') && features.temporal_search,
        'context until': verbs.includes('context') && features.temporal_search,
        batch: features.batch,
        'idempotent add': features.idempotency,
        'idempotent batch': features.batch && features.idempotency,
      };
      for (const [name, send] of Object.entries(REQUESTS)) {
        if (declared[name] ?? verbs.includes(name)) continue;
        expectError(await send(subject().client), 'unsupported_capability');
      }
      if (verbs.includes('list') && !features.idempotency) {
        expect((await subject().client.list({ user_id })).items).toEqual([]);
      }
    });

    it('[SPEC Limits features.max_content_length] [SPEC Capabilities features.max_content_length] [Decision 8] content is measured in code points', async ({
      skip,
    }) => {
      const most = subject().capabilities.features.max_content_length;
      if (most === null || most > 200_000) return skip('has no limit below the size of a request');
      const content = '😀'.repeat(most);
      expect((await subject().client.add({ user_id: freshUser(), content })).content).toBe(content);
      const reply = await subject().client.tell('POST', '/memories', { user_id: freshUser(), content: `${content}x` });
      expectError(reply, 'invalid_request');
    });

    it('[SPEC Capabilities features.supports_supersession] without it supersedes is not stored', async ({ skip }) => {
      skip(subject().capabilities.features.supports_supersession, 'stores it');
      const { tell, byId, ask } = subject().client;
      const supersedes = ['mem_old'];
      const added = await tell('POST', '/memories', { user_id: freshUser(), content: 'new', supersedes });
      const stored = await ask(byId((added.body as { id?: string }).id ?? 'none'));
      expect(stored.body).toEqual(expect.not.objectContaining({ supersedes }));
    });

    test('[SPEC POST /memories tags] [Decision 18] features.tags tells whether tags are stored', async (need) => {
      need('update');
      const { id } = await subject().client.add({ user_id: freshUser(), content: 'tagged' });
      const reply = await subject().client.tell('PATCH', subject().client.byId(id), { tags: ['kept'] });
      if (!subject().capabilities.features.tags) return expect(reply.status).toBeGreaterThanOrEqual(400);
      expect((await subject().client.get(id)).tags).toEqual(['kept']);
    });
  });
