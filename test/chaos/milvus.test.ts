import { expect, onTestFinished, test } from 'vitest';
import { NO_MILVUS, openMilvus } from '../milvus/server.ts';
import { anyOf, brokenConnection, downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { survive } from './survive.ts';

const ROUNDS = 3;

test('[SPEC Errors provider_error] Milvus, killed while it is written to, loses nothing acknowledged', async ({
  skip,
}) => {
  skip(NO_MILVUS !== '', NO_MILVUS);
  const milvus = await openMilvus();
  onTestFinished(milvus.close);
  const { base_url } = await startEmbedding();
  const subject = await startSubject({
    env: {
      ...embeddedBy(base_url),
      OMP_SEARCH_MODE: 'vector',
      OMP_PROVIDER: 'milvus',
      OMP_MILVUS_URL: milvus.url,
    },
    clients: 8,
    keys: false,
    // On a busy machine the deadline may pass before the vector arrives.
    excuse: anyOf(brokenConnection, downOf('milvus', 'openai')),
  });
  for (let round = 1; round <= ROUNDS; round++) {
    await survive(subject.load, {
      name: `Milvus: killed (-9), ${round} of ${ROUNDS}`,
      async strike() {
        await milvus.kill();
        await milvus.start();
      },
    });
  }
  await survive(subject.load, {
    name: 'the gateway on Milvus: killed (-9)',
    async strike() {
      await subject.gateway.kill();
      await subject.again();
    },
  });
  await subject.load.pause();
  for (const ledger of subject.ledgers) await ledger.searchOwn(5);
  expect((await subject.gateway.stop()).status).toBe(0);
});
