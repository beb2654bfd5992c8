import { expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { freshUser } from '../support/subject.ts';

conformance(
  'pinecone, sharded, as the emulator speaks',
  (options) => openPineconeSubject({ apiVersion: '2025-01', lsn: false }, { layout: 'sharded' }, options),
  (subject) => {
    it('[Decision 23] gives no tokens where the service tells of no sequence', async () => {
      const { headers } = await subject().client.tell('POST', '/memories', { user_id: freshUser(), content: 'tea' });
      expect(headers.get('x-consistency-token')).toBeNull();
    });
  },
);
