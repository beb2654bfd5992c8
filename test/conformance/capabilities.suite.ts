import { describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { VERBS } from '../support/wire.ts';
import { type GetSubject, needFields, needVerbs, supports } from './subject.ts';

const integerOrNull = (value: unknown): boolean => value === null || (Number.isInteger(value) && Number(value) > 0);

export const capabilitiesSuite = (subject: GetSubject) =>
  describe('capabilities', () => {
    it('[SPEC GET /capabilities] [SPEC Service capabilities] [SPEC Service no wrapper] answers 200 with the document itself', async () => {
      const reply = await subject().client.ask('/capabilities');
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual(subject().capabilities);
    });

    it('[SPEC Capabilities omp_version] [SPEC Versioning 1] [SPEC Versioning 2] is 0.1', () => {
      expect(subject().capabilities.omp_version).toBe('0.1');
    });

    it('[SPEC Capabilities provider] is the name of the backend', () => {
      expect(subject().capabilities.provider).toBe(subject().provider.name);
      expect(subject().capabilities.provider).toMatch(/^[a-z][a-z0-9-]*$/);
    });

    it('[SPEC Capabilities verbs] [SPEC Service verbs] [Decision 18] are distinct and of the closed list', () => {
      const { verbs } = subject().capabilities;
      expect(VERBS).toEqual(expect.arrayContaining([...verbs]));
      expect(new Set(verbs).size).toBe(verbs.length);
      expect(verbs).toContain('get');
    });

    it('[SPEC Capabilities features] [SPEC Capabilities features.vector_search] [SPEC Capabilities features.keyword_search] flags are booleans', () => {
      const { features } = subject().capabilities;
      for (const flag of ['vector_search', 'keyword_search', 'graph_queries', 'temporal'] as const) {
        expect(features[flag], flag).toBeTypeOf('boolean');
      }
      expect(features.supports_supersession).toBeTypeOf('boolean');
    });

    it('[SPEC Capabilities features.graph_queries] no provider claims graph queries, which no endpoint offers', () => {
      expect(subject().capabilities.features.graph_queries).toBe(false);
    });

    it('[SPEC Capabilities features.scopes] [Decision 18] is one of the closed list', () => {
      expect(['native', 'tags', 'none']).toContain(subject().capabilities.features.scopes);
    });

    it('[SPEC Capabilities features.temporal] time filters work where they are declared', async ({ skip }) => {
      needVerbs(skip, subject(), 'list');
      skip(!subject().capabilities.features.temporal, 'declares no time filters');
      const user_id = freshUser();
      await subject().client.add({ user_id, content: 'now' });
      expect((await subject().client.list({ user_id, until: '2001-01-01' })).items).toEqual([]);
      expect((await subject().client.list({ user_id, since: '2001-01-01' })).items).toHaveLength(1);
    });

    it('[SPEC Capabilities features.max_content_length] [SPEC Capabilities limits] are positive integers or null', () => {
      const { features, limits } = subject().capabilities;
      expect(features.max_content_length).toSatisfy(integerOrNull);
      if (limits === undefined) return;
      expect(limits.rate_limit_per_minute).toSatisfy(integerOrNull);
      expect(limits.max_search_results).toSatisfy(integerOrNull);
    });

    it('[SPEC Limits features.max_content_length] [Decision 8] content is measured in code points', async ({
      skip,
    }) => {
      const most = subject().capabilities.features.max_content_length;
      if (most === null || most > 200_000) return skip('declares no bound below the size of a request');
      const user_id = freshUser();
      const content = '😀'.repeat(most);
      expect((await subject().client.add({ user_id, content })).content).toBe(content);
      const reply = await subject().client.tell('POST', '/memories', { user_id, content: `${content}x` });
      expectError(reply, 'invalid_request');
    });

    it('[SPEC Capabilities limits.rate_limit_per_minute] [SPEC Limits limits.rate_limit_per_minute] null: any pace is served', async ({
      skip,
    }) => {
      skip((subject().capabilities.limits?.rate_limit_per_minute ?? null) !== null, 'declares a rate limit');
      const replies = await Promise.all(Array.from({ length: 100 }, () => subject().client.ask('/capabilities')));
      expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200]));
    });

    it('[SPEC Capabilities limits.max_search_results] the declared maximum is served', async ({ skip }) => {
      needVerbs(skip, subject(), 'search');
      const limit = Math.min(100, subject().capabilities.limits?.max_search_results ?? 100);
      expect(await subject().client.search({ user_id: freshUser(), q: 'anything', limit })).toEqual([]);
    });

    it('[SPEC Capabilities features.supports_supersession] supersedes comes back where it is tracked', async ({
      skip,
    }) => {
      needFields(skip, subject(), 'supersedes');
      const user_id = freshUser();
      const { id } = await subject().client.add({ user_id, content: 'new', supersedes: ['mem_old'] });
      const { supersedes } = await subject().client.get(id);
      if (subject().capabilities.features.supports_supersession) expect(supersedes).toEqual(['mem_old']);
      else expect(supersedes ?? []).toEqual([]);
    });

    it('[SPEC POST /memories tags] [Decision 18] features.tags says whether tags are kept', async () => {
      const { id } = await subject().client.add({ user_id: freshUser(), content: 'tagged' });
      const { tags } = subject().capabilities.features;
      const reply = await subject().client.tell('PATCH', subject().client.byId(id), { tags: ['kept'] });
      if (!tags) return expect(reply.status).toBeGreaterThanOrEqual(400);
      expect((await subject().client.get(id)).tags).toEqual(['kept']);
    });

    it('[SPEC Capabilities features.supports_audit] [Decision 11] says whether audit is a verb', () => {
      expect(subject().capabilities.features.supports_audit).toBe(supports(subject(), 'audit'));
    });

    it('[SPEC Errors unsupported_capability] [Decision 11] GET /audit is refused where audit is not declared', async ({
      skip,
    }) => {
      skip(supports(subject(), 'audit'), 'declares audit');
      expectError(await subject().client.ask('/audit', { user_id: freshUser() }), 'unsupported_capability');
    });

    it('[SPEC GET /healthz] [SPEC Health status] [SPEC Health provider] answers 200, ok, and the provider', async () => {
      const reply = await subject().client.ask('/healthz');
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual({ status: 'ok', provider: subject().capabilities.provider });
    });

    it('[SPEC Authentication 1] [SPEC Authentication 3] [SPEC Authentication 4] without configured keys nothing asks for one', async () => {
      const { client } = subject();
      const user_id = freshUser();
      const credentials: readonly Record<string, string>[] = [
        {},
        { authorization: 'Bearer whatever' },
        { authorization: 'nonsense' },
        { 'x-api-key': '' },
      ];
      for (const headers of credentials) {
        for (const path of ['/capabilities', '/healthz'])
          expect((await client.ask(path, {}, headers)).status).toBe(200);
        expect((await client.tell('POST', '/memories', { user_id, content: 'x' }, headers)).status).toBe(201);
      }
    });
  });
