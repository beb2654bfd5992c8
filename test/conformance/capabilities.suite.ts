import { describe, expect, it } from 'vitest';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { VERBS } from '../support/wire.ts';
import { type GetSubject, supports, testOf } from './subject.ts';

export const capabilitiesSuite = (subject: GetSubject) =>
  describe('capabilities', () => {
    const test = testOf(subject);

    it('[SPEC GET /capabilities] [SPEC Capabilities omp_version] [SPEC Versioning 1] [SPEC Versioning 2] [SPEC Capabilities provider] [SPEC Capabilities verbs] [SPEC Service verbs] [SPEC Capabilities features] [SPEC Capabilities features.graph_queries] [SPEC Capabilities limits] [Decision 18] answers the document, with values of the closed lists', async () => {
      const { status, body } = await subject().client.ask('/capabilities');
      expect({ status, body }).toEqual({ status: 200, body: subject().capabilities });
      const { omp_version, provider, verbs, features, limits } = subject().capabilities;
      expect({ omp_version, provider }).toEqual({ omp_version: '0.1', provider: subject().provider.name });
      expect(provider).toMatch(/^[a-z][a-z0-9-]*$/);
      expect(VERBS.filter((verb) => verbs.includes(verb))).toHaveLength(verbs.length);
      expect(verbs).toContain('get');
      const { scopes, max_content_length, graph_queries, ...flags } = features;
      expect(['native', 'tags', 'none']).toContain(scopes);
      expect(graph_queries).toBe(false);
      for (const [flag, value] of Object.entries(flags)) expect(value, flag).toBeTypeOf('boolean');
      for (const most of [max_content_length, ...Object.values(limits ?? {})]) {
        expect(most === null || (Number.isInteger(most) && most > 0)).toBe(true);
      }
    });

    it('[SPEC GET /memories/search requires] [SPEC Capabilities features.supports_audit] [Decision 20] features agree with verbs', () => {
      const { features } = subject().capabilities;
      expect(supports(subject(), 'search')).toBe(features.vector_search || features.keyword_search);
      expect(supports(subject(), 'context')).toBe(supports(subject(), 'search'));
      expect(features.multi_user).toBe(supports(subject(), 'search'));
      expect(supports(subject(), 'audit')).toBe(features.supports_audit);
      expect(features.idempotency).toBe(subject().provider.addIdempotent !== undefined);
    });

    const id = '/memories/mem_any';
    const user_id = freshUser();
    const fields = { user_id, content: 'tea' };
    /** A request for each capability. */
    const REQUESTS: Readonly<Record<string, (client: ReturnType<GetSubject>['client']) => Promise<Reply>>> = {
      update: ({ tell }) => tell('PATCH', id, { content: 'tea' }),
      delete: ({ tell }) => tell('DELETE', id),
      list: ({ ask }) => ask('/memories', { user_id }),
      search: ({ ask }) => ask('/memories/search', { user_id, q: 'tea' }),
      context: ({ tell }) => tell('POST', '/context', { user_id, query: 'tea' }),
      audit: ({ ask }) => ask('/audit', { user_id }),
      'list by scope': ({ ask }) => ask('/memories', { user_id, scope: 'a/*' }),
      'list since': ({ ask }) => ask('/memories', { user_id, since: '2024-01-01' }),
      'list until': ({ ask }) => ask('/memories', { user_id, until: '2024-01-01' }),
      batch: ({ tell }) => tell('POST', '/memories/batch', { memories: [fields] }),
      'idempotent add': ({ tell }) => tell('POST', '/memories', fields, { 'idempotency-key': 'k' }),
      'idempotent batch': ({ tell }) =>
        tell('POST', '/memories/batch', { memories: [fields] }, { 'idempotency-key': 'k' }),
    };

    it('[SPEC Errors unsupported_capability] [SPEC GET /memories/search fallback] rejects what is not declared', async () => {
      const { verbs, features } = subject().capabilities;
      const declared: Readonly<Record<string, boolean>> = {
        'list by scope': verbs.includes('list') && features.scopes !== 'none',
        'list since': verbs.includes('list') && features.temporal,
        'list until': verbs.includes('list') && features.temporal,
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

    test('[SPEC Capabilities features.temporal] filters lists by time', async (need) => {
      need('list', 'temporal');
      const owner = freshUser();
      await subject().client.add({ user_id: owner, content: 'now' });
      expect((await subject().client.list({ user_id: owner, until: '2001-01-01' })).items).toEqual([]);
      expect((await subject().client.list({ user_id: owner, since: '2001-01-01' })).items).toHaveLength(1);
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

    it('[SPEC Capabilities features.supports_supersession] tells whether supersedes is stored', async () => {
      const { tell, byId, ask } = subject().client;
      const supersedes = ['mem_old'];
      const added = await tell('POST', '/memories', { user_id: freshUser(), content: 'new', supersedes });
      const stored = await ask(byId((added.body as { id?: string }).id ?? 'none'));
      const isStored = expect.objectContaining({ supersedes });
      const { supports_supersession } = subject().capabilities.features;
      expect(stored.body).toEqual(supports_supersession ? isStored : expect.not.objectContaining({ supersedes }));
    });

    test('[SPEC POST /memories tags] [Decision 18] features.tags tells whether tags are stored', async (need) => {
      need('update');
      const { id } = await subject().client.add({ user_id: freshUser(), content: 'tagged' });
      const reply = await subject().client.tell('PATCH', subject().client.byId(id), { tags: ['kept'] });
      if (!subject().capabilities.features.tags) return expect(reply.status).toBeGreaterThanOrEqual(400);
      expect((await subject().client.get(id)).tags).toEqual(['kept']);
    });

    it('[SPEC GET /healthz] [SPEC Health status] [SPEC Health provider] answers 200, ok, and the provider', async () => {
      const { status, body } = await subject().client.ask('/healthz');
      expect({ status, body }).toEqual({
        status: 200,
        body: { status: 'ok', provider: subject().capabilities.provider },
      });
    });
  });
