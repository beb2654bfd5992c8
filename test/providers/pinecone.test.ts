import { expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { expectError } from '../support/expect-error.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { freshUser } from '../support/subject.ts';

conformance(
  'pinecone, all users in one namespace',
  (options) => openPineconeSubject({}, { layout: 'single' }, options),
  (subject) => {
    it('[SPEC Capabilities features] [SPEC Capabilities verbs] [Decision 24] declares what Pinecone can do, and no more', () => {
      const { verbs, features, limits } = subject().capabilities;
      expect(verbs).toEqual(['add', 'search', 'get', 'update', 'delete', 'list', 'context']);
      expect(features).toEqual({
        vector_search: true,
        keyword_search: false,
        graph_queries: false,
        temporal: true,
        scopes: 'tags',
        max_content_length: 9_000,
        supports_audit: false,
        supports_supersession: true,
        idempotency: false,
        tags: true,
        consistency_tokens: true,
      });
      expect(limits).toEqual({ rate_limit_per_minute: null, max_search_results: 100 });
    });

    it('[Decision 24] [SPEC Errors payload_too_large] a memory must fit into the metadata of a record, all fields together', async () => {
      const { client } = subject();
      const user_id = freshUser();
      const fields = (length: number) => ({ user_id, content: 'tea', 'x-note': 'n'.repeat(length) });
      const { id } = await client.add(fields(37_000));
      const refused = [
        await client.tell('POST', '/memories', fields(38_000)),
        await client.tell('PATCH', client.byId(id), { 'x-more': 'n'.repeat(2_000) }),
      ];
      for (const reply of refused) expect(expectError(reply, 'payload_too_large').message).toMatch(/38,?000/);
      expect(await client.get(id)).not.toHaveProperty('x-more');
      expect((await client.list({ user_id })).items).toHaveLength(1);
    });
  },
);
