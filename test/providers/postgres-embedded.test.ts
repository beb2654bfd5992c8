import { rm } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import postgres from '../../providers/postgres/index.ts';
import { providerTests } from '../conformance/provider-tests.ts';
import { copyEmptyPostgres } from '../support/empty-postgres.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { freshUser, makeDataDir, openSubject, UNHURRIED_POSTGRES } from '../support/subject.ts';
import { documentedResult } from './documented.ts';

const LABEL = 'postgres, embedded';
providerTests(
  postgres,
  async (folder) => {
    await copyEmptyPostgres(folder);
    return { options: { ...UNHURRIED_POSTGRES, schema: 'omp' } };
  },
  LABEL,
);
documentedResult(LABEL);

it('[SPEC POST /memories] [SPEC Memory embedding_model] the embedded postgres keeps its memories, and rejects another model with both names', async () => {
  const data_dir = await makeDataDir();
  onTestFinished(() => rm(data_dir, { recursive: true, force: true }));
  const open = (embedder = hashingEmbedder()) =>
    openSubject({ provider: 'postgres', options: { schema: 'omp' }, data_dir, embedder });
  const user_id = freshUser();
  const first = await open();
  const added = await first.client.add({ user_id, content: 'stays', scope: 'a/b', tags: ['t'], 'x-n': { deep: [1] } });
  await first.close();
  await expect(open({ ...hashingEmbedder(), model: 'another-model' })).rejects.toThrow(
    /test-trigram-hashing[\s\S]*another-model|another-model[\s\S]*test-trigram-hashing/,
  );
  const second = await open();
  onTestFinished(second.close);
  expect(await second.client.get(added.id)).toEqual(added);
  expect((await second.client.list({ user_id })).items).toEqual([added]);
  expect((await second.client.search({ user_id, q: 'stays' }))[0]?.memory).toEqual(added);
});
