import { expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { openSubject } from '../support/subject.ts';

conformance(
  'memory, keyword search only',
  (options) => openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword', ...options }),
  (subject) => {
    it('[SPEC Capabilities features.vector_search] [SPEC Capabilities features.keyword_search] declares keyword search alone', () => {
      const { vector_search, keyword_search } = subject().capabilities.features;
      expect({ vector_search, keyword_search }).toEqual({ vector_search: false, keyword_search: true });
    });
  },
);
