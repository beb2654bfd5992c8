import { expect, it } from 'vitest';
import { CLIENT_TYPES, clientTypes } from '../../scripts/client-types.ts';
import { read } from '../docs/markdown.ts';

it('the types of the client are those of /openapi.json (`npm run docs` updates them)', () => {
  expect(read(CLIENT_TYPES)).toBe(clientTypes());
});
