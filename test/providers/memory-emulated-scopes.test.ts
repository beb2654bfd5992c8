import { expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { freshUser, openSubject } from '../support/subject.ts';

conformance(
  'memory, scopes emulated by the gateway',
  (options) => openSubject({ provider: 'memory', options: { scopes: 'none' }, ...options }),
  (subject) => {
    it('[SPEC Capabilities features.scopes] declares that scopes are emulated via tags', () => {
      expect(subject().capabilities.features.scopes).toBe('tags');
    });

    it('[Decision 3] [Decision 4] finds what lies beyond any batch the gateway fetches at once', async () => {
      const { client } = subject();
      const user_id = freshUser();
      const needle = (place: string) =>
        client.add({ user_id, content: 'quite another text', scope: `${place}/needle` });
      const oldest = await needle('first');
      for (let i = 0; i < 1100; i++) await client.add({ user_id, content: 'hay note', scope: `hay/${i}` });
      const newest = await needle('fin');
      // Neither filter names a whole segment, so no tag narrows what the backend is asked for.
      const first = await client.list({ user_id, scope: '*needle', limit: 1 });
      expect(first.items).toEqual([newest]);
      const second = await client.list({ user_id, scope: '*needle', limit: 1, cursor: first.next_cursor ?? undefined });
      expect(second).toEqual({ items: [oldest], next_cursor: null });
      expect((await client.list({ user_id, scope: '*', limit: 500 })).items).toHaveLength(500);
      const hits = await client.search({ user_id, q: 'hay note', scope: 'fi', limit: 1 });
      expect(hits.map((hit) => hit.memory.id)).toEqual([newest.id]);
    });
  },
);
