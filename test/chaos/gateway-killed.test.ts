import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { dataFolder } from '../process/gateway.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { FULL } from '../support/full.ts';
import { anyOf, brokenConnection, downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { survive } from './survive.ts';

const ROUNDS = FULL ? 2 : 1;

const STORES = {
  async embedded() {
    const OMP_DATA_DIR = await dataFolder();
    return { OMP_DATA_DIR };
  },
  async server() {
    const cluster = await createCluster();
    await cluster.start();
    return { DATABASE_URL: cluster.url };
  },
};

describe.each(['embedded', 'server'] as const)('on the %s Postgres', (store) => {
  for (const [how, more] of [
    ['', {}],
    [', async ingestion', { OMP_INGESTION: 'async' }],
  ] as const) {
    test(`killed ${ROUNDS} times during writes, the gateway starts again with everything acknowledged${how}`, async ({
      skip,
    }) => {
      skip(store === 'server' && POSTGRES_BIN === '', NO_POSTGRES_BIN);
      const { base_url } = await startEmbedding();
      const subject = await startSubject({
        env: { ...(await STORES[store]()), ...embeddedBy(base_url), ...more },
        clients: 12,
        // On a busy machine the deadline may pass before the vector arrives.
        excuse: anyOf(brokenConnection, downOf('postgres', 'openai')),
      });
      for (let round = 1; round <= ROUNDS; round++) {
        await survive(subject.load, {
          name: `gateway on ${store}${how}: killed (-9), ${round} of ${ROUNDS}`,
          async strike() {
            await subject.gateway.kill();
            await subject.again();
          },
        });
      }
      await subject.load.pause();
      for (const ledger of subject.ledgers) {
        while (!(await ledger.allDone())) await sleep(50);
        await ledger.searchOwn(5);
      }
      expect((await subject.gateway.stop()).status).toBe(0);
    });
  }
});
