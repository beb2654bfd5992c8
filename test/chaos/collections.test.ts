import { expect, onTestFinished, test } from 'vitest';
import { DATABASES } from '../collections/databases.ts';
import { dataFolder } from '../process/gateway.ts';
import { anyOf, brokenConnection, downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { survive } from './survive.ts';

const ROUNDS = 3;

test.for(DATABASES)(
  '[Decision 64] [SPEC Errors provider_error] on $name, whichever of database and gateway is killed amid writes, nothing acknowledged is lost',
  async ({ name, provider, absent, unkillable, open }, { skip }) => {
    const reason = absent || unkillable;
    skip(Boolean(reason), reason);
    const database = await open();
    onTestFinished(() => void database.close());
    const { base_url } = await startEmbedding();
    const subject = await startSubject({
      env: {
        ...embeddedBy(base_url),
        ...database.env,
        OMP_PROVIDER: provider.name,
        OMP_SEARCH_MODE: 'vector',
        OMP_DATA_DIR: await dataFolder(),
      },
      clients: 8,
      keys: false,
      // On a busy machine the deadline may pass before the vector arrives.
      excuse: anyOf(brokenConnection, downOf(provider.name, 'openai')),
    });
    const killed = async (what: string, strike: () => Promise<void>) => {
      for (let round = 1; round <= ROUNDS; round++)
        await survive(subject.load, { name: `${what}: killed (-9), ${round} of ${ROUNDS}`, strike });
    };
    const { server } = database;
    if (server)
      await killed(name, async () => {
        await server.kill();
        await server.start();
      });
    await killed(`the gateway on ${name}`, async () => {
      await subject.gateway.kill();
      await subject.again();
    });
    await subject.load.pause();
    for (const ledger of subject.ledgers) await ledger.searchOwn(5);
    expect((await subject.gateway.stop()).status).toBe(0);
  },
);
