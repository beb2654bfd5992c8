import { expect, onTestFinished, test } from 'vitest';
import { NO_CHROMA, openChroma } from '../chroma/start.ts';
import { downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { survive } from './survive.ts';

const ROUNDS = 3;

test('[SPEC Errors provider_error] Chroma, killed while it is written to, loses nothing acknowledged', async ({
  skip,
}) => {
  skip(NO_CHROMA !== '', NO_CHROMA);
  const chroma = await openChroma();
  onTestFinished(chroma.close);
  const { base_url } = await startEmbedding();
  const { load, ledgers, gateway } = await startSubject({
    env: {
      ...embeddedBy(base_url),
      OMP_SEARCH_MODE: 'vector',
      OMP_PROVIDER: 'chroma',
      OMP_CHROMA_URL: chroma.url,
    },
    clients: 8,
    keys: false,
    // On a busy machine the deadline may pass before the vector arrives.
    excuse: downOf('chroma', 'openai'),
  });
  for (let round = 1; round <= ROUNDS; round++) {
    await survive(load, {
      name: `Chroma: killed (-9), ${round} of ${ROUNDS}`,
      async strike() {
        await chroma.kill();
        await chroma.start();
      },
    });
  }
  await load.pause();
  for (const ledger of ledgers) await ledger.searchOwn(5);
  expect((await gateway.stop()).status).toBe(0);
});
