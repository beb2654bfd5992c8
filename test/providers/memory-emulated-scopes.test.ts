import { expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { openSubject } from '../support/subject.ts';

conformance(
  'memory, scopes emulated by the gateway',
  () => openSubject({ provider: 'memory', options: { scopes: 'none' } }),
  (subject) => {
    it('[SPEC Capabilities features.scopes] declares that scopes are emulated via tags', () => {
      expect(subject().capabilities.features.scopes).toBe('tags');
    });
  },
);
