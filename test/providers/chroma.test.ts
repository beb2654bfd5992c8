import { randomUUID } from 'node:crypto';
import { afterAll, describe } from 'vitest';
import chroma from '../../providers/collections/chroma.ts';
import { type Chroma, NO_CHROMA, openChroma } from '../chroma/start.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { documentedResult } from './documented.ts';

const LABEL = `Chroma${NO_CHROMA && ` (${NO_CHROMA})`}`;

describe.skipIf(NO_CHROMA !== '')(LABEL, () => {
  let server: Promise<Chroma> | undefined;
  afterAll(async () => (await server)?.close());
  const open = async () => {
    server ??= openChroma();
    return { mode: 'vector' as const, options: { url: (await server).url, collection: randomUUID() } };
  };
  providerTests(chroma, open, LABEL);
  documentedResult(LABEL);
});
