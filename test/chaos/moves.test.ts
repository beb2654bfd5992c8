import { expect, test } from 'vitest';
import { startPinecone } from '../pinecone-server/start.ts';
import { HAS_CITUS, startCitus } from '../process/citus-cluster.ts';
import { dataFolder } from '../process/gateway.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { type Moving, moveUnderLoad, startMoving } from './moves.ts';
import { embeddedBy, startEmbedding } from './subject.ts';

const WHOLE = { memories: 20_000, clients: 8, kills: 6 } as const;

async function server(): Promise<string> {
  const cluster = await createCluster();
  await cluster.start();
  return cluster.url;
}

test('embedded to a server, to Citus and back: nothing acknowledged is lost, reads never fail, writes only while frozen', async ({
  skip,
}) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const vectors = embeddedBy((await startEmbedding()).base_url);
  const places: Moving[] = [
    await startMoving('embedded', { OMP_DATA_DIR: await dataFolder(), ...vectors }),
    await startMoving('a server', { DATABASE_URL: await server(), ...vectors }),
  ];
  if (HAS_CITUS) {
    const env = { DATABASE_URL: (await startCitus()).url, OMP_POSTGRES_DISTRIBUTED: 'citus', ...vectors };
    places.push(await startMoving('Citus', env));
  }
  await moveUnderLoad([...places, ...places.slice(0, -1).reverse()], WHOLE);
});

test('a server to Pinecone and back: nothing acknowledged is lost, reads never fail, writes only while frozen', async ({
  skip,
}) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const vectors = { ...embeddedBy((await startEmbedding()).base_url), OMP_SEARCH_MODE: 'vector' };
  const pinecone = await startPinecone();
  const index = { OMP_PROVIDER: 'pinecone', PINECONE_API_KEY: 'test', PINECONE_INDEX_HOST: pinecone.url };
  const first = await startMoving('a server', { DATABASE_URL: await server(), ...vectors });
  await moveUnderLoad([first, await startMoving('Pinecone', { ...index, ...vectors }), first], WHOLE);
  await expect(pinecone.close()).resolves.toBeUndefined();
});
