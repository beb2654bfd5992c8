import { expect, it } from 'vitest';
import { moveUnderLoad, startMoving } from '../chaos/moves.ts';
import { embeddedBy, startEmbedding } from '../chaos/subject.ts';
import { startPinecone } from '../pinecone-server/start.ts';
import { dataFolder } from '../process/gateway.ts';

it('[Decision 53] a store moves to Pinecone under load: nothing acknowledged is lost, reads never fail, writes only while it is frozen', async () => {
  const vectors = { ...embeddedBy((await startEmbedding()).base_url), OMP_SEARCH_MODE: 'vector' };
  const pinecone = await startPinecone();
  const index = { OMP_PROVIDER: 'pinecone', PINECONE_API_KEY: 'test', PINECONE_INDEX_HOST: pinecone.url };
  const places = [
    await startMoving('embedded', { OMP_DATA_DIR: await dataFolder(), ...vectors }),
    await startMoving('Pinecone', { ...index, ...vectors }),
  ];
  await moveUnderLoad(places, { memories: 150, clients: 3, kills: 3 });
  await expect(pinecone.close()).resolves.toBeUndefined();
});
