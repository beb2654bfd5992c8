import { expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';

// Far enough behind that hardly any read sees the write before it; the gateway looks once and does not wait.
conformance(
  'pinecone, a namespace for each user, shown 7 writes late',
  (options) => openPineconeSubject({ lagWrites: 7 }, { layout: 'per-user', consistency_wait_ms: 0 }, options),
  (subject) => {
    it('[Decision 23] an answer that may lack what the token names says so', async () => {
      const { ask, tell } = subject().client;
      const user_id = freshUser();
      const added = await tell('POST', '/memories', { user_id, content: 'tea' });
      const token = added.headers.get('x-consistency-token');
      expect(token).toMatch(/^[\w-]+$/);
      const { id } = added.body as WireMemory;
      for (const path of ['/memories', '/memories/search']) {
        const reply = await ask(path, { user_id, q: 'tea' }, { 'x-consistency-token': String(token) });
        expect(reply.headers.get('x-consistency'), path).toBe('behind');
        // This gateway wrote it itself.
        expect(reply.text).toContain(id);
      }
    });
  },
);
