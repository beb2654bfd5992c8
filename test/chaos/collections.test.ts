import { expect, test } from 'vitest';
import { dataFolder } from '../process/gateway.ts';
import { anyOf, brokenConnection, downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { survive } from './survive.ts';

const ROUNDS = 3;

test.each([
  ['libsql', 'a libSQL file'],
  ['lancedb', 'a LanceDB folder'],
])(
  '[Decision 64] the gateway by %s on %s, killed during writes, starts again with everything acknowledged',
  async (provider, where) => {
    const { base_url } = await startEmbedding();
    const subject = await startSubject({
      env: {
        ...embeddedBy(base_url),
        OMP_PROVIDER: provider,
        OMP_SEARCH_MODE: 'vector',
        OMP_DATA_DIR: await dataFolder(),
      },
      clients: 8,
      keys: false,
      // On a busy machine the deadline may pass before the vector arrives.
      excuse: anyOf(brokenConnection, downOf(provider, 'openai')),
    });
    for (let round = 1; round <= ROUNDS; round++) {
      await survive(subject.load, {
        name: `gateway on ${where}: killed (-9), ${round} of ${ROUNDS}`,
        async strike() {
          await subject.gateway.kill();
          await subject.again();
        },
      });
    }
    await subject.load.pause();
    for (const ledger of subject.ledgers) await ledger.searchOwn(5);
    expect((await subject.gateway.stop()).status).toBe(0);
  },
);
