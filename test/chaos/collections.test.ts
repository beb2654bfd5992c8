import { expect, onTestFinished, test } from 'vitest';
import { NO_CHROMA, openChroma } from '../chroma/start.ts';
import { NO_MILVUS, openMilvus } from '../milvus/server.ts';
import { dataFolder } from '../process/gateway.ts';
import { NO_QDRANT_BIN, startRealQdrant } from '../qdrant/server.ts';
import { anyOf, brokenConnection, downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { survive } from './survive.ts';

interface Server {
  readonly url: string;
  kill(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

interface Case {
  readonly provider: string;
  readonly title: string;
  /** Of a database with a server. `absent`: why it cannot be had here, or empty. */
  readonly server?: { readonly absent: string; readonly setting: string; open(): Promise<Server> };
}
const CASES: readonly Case[] = [
  { provider: 'libsql', title: 'a libSQL file' },
  { provider: 'lancedb', title: 'a LanceDB folder' },
  {
    provider: 'qdrant',
    title: 'Qdrant',
    server: { absent: NO_QDRANT_BIN, setting: 'QDRANT_URL', open: startRealQdrant },
  },
  { provider: 'milvus', title: 'Milvus', server: { absent: NO_MILVUS, setting: 'OMP_MILVUS_URL', open: openMilvus } },
  { provider: 'chroma', title: 'Chroma', server: { absent: NO_CHROMA, setting: 'OMP_CHROMA_URL', open: openChroma } },
];
const ROUNDS = 3;

test.for(CASES)(
  '[Decision 64] [SPEC Errors provider_error] on $title, whichever of database and gateway is killed amid writes, nothing acknowledged is lost',
  async ({ provider, title, server }, { skip }) => {
    skip(server !== undefined && server.absent !== '', server?.absent);
    const database = await server?.open();
    if (database) onTestFinished(database.close);
    const { base_url } = await startEmbedding();
    const subject = await startSubject({
      env: {
        ...embeddedBy(base_url),
        OMP_PROVIDER: provider,
        OMP_SEARCH_MODE: 'vector',
        OMP_DATA_DIR: await dataFolder(),
        ...(server && { [server.setting]: database?.url }),
      },
      clients: 8,
      keys: false,
      // On a busy machine the deadline may pass before the vector arrives.
      excuse: anyOf(brokenConnection, downOf(provider, 'openai')),
    });
    const killed = async (name: string, strike: () => Promise<void>) => {
      for (let round = 1; round <= ROUNDS; round++)
        await survive(subject.load, { name: `${name}: killed (-9), ${round} of ${ROUNDS}`, strike });
    };
    if (database)
      await killed(title, async () => {
        await database.kill();
        await database.start();
      });
    await killed(`the gateway on ${title}`, async () => {
      await subject.gateway.kill();
      await subject.again();
    });
    await subject.load.pause();
    for (const ledger of subject.ledgers) await ledger.searchOwn(5);
    expect((await subject.gateway.stop()).status).toBe(0);
  },
);
