import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { conformance } from '../conformance/index.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { freshUser, makeDataDir, openSubject } from '../support/subject.ts';

conformance('postgres, embedded', (options) =>
  openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options }),
);

describe('the data folder of the embedded postgres', () => {
  let data_dir: string;
  beforeAll(async () => {
    data_dir = await makeDataDir();
  });
  afterAll(() => rm(data_dir, { recursive: true, force: true }));
  const open = (embedder = hashingEmbedder()) =>
    openSubject({ provider: 'postgres', options: { schema: 'omp' }, data_dir, embedder });

  it('[SPEC POST /memories] keeps what was stored when the gateway is closed and opened again', async () => {
    const user_id = freshUser();
    const first = await open();
    const added = await first.client.add({
      user_id,
      content: 'survives',
      scope: 'a/b',
      tags: ['t'],
      'x-n': { deep: [1] },
    });
    await first.close();
    const second = await open();
    try {
      expect(await second.client.get(added.id)).toEqual(added);
      expect((await second.client.list({ user_id })).items).toEqual([added]);
      expect((await second.client.search({ user_id, q: 'survives' }))[0]?.memory).toEqual(added);
    } finally {
      await second.close();
    }
  });

  it('[SPEC Memory embedding_model] is not opened with another model, and the refusal names both', async () => {
    const first = await open();
    await first.client.add({ user_id: freshUser(), content: 'indexed with the first model' });
    await first.close();
    const other = { ...hashingEmbedder(), model: 'another-model' };
    await expect(open(other)).rejects.toThrow(
      /test-trigram-hashing[\s\S]*another-model|another-model[\s\S]*test-trigram-hashing/,
    );
  });

  it('[Decision 16] is not opened twice at once', async () => {
    const first = await open();
    try {
      await expect(open()).rejects.toThrow(/in use/);
      expect((await first.client.ask('/healthz')).status).toBe(200);
    } finally {
      await first.close();
    }
  });
});
