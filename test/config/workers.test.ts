import { describe, expect, it } from 'vitest';
import { load, mistakesOf } from './sources.ts';

const PINECONE = { PINECONE_API_KEY: 'pc', PINECONE_INDEX_HOST: 'memories.svc.pinecone.io' };

describe('several workers', () => {
  it('are taken with postgres, embedded or a server', () => {
    const databases: Record<string, string>[] = [{}, { DATABASE_URL: 'postgres://db.example.com/omp' }];
    for (const env of databases) {
      expect(load({ env: { ...env, OMP_WORKERS: '4' } }).config.workers).toBe(4);
    }
  });

  it.for([
    ['memory', 'memories of its own'],
    ['pinecone', 'X-Consistency-Token'],
  ])('are refused with %s, where each process would know other things', ([OMP_PROVIDER = '', way]) => {
    const env = { ...PINECONE, OMP_PROVIDER, OMP_WORKERS: '2' };
    expect(mistakesOf({ env })).toEqual([
      expect.stringMatching(
        new RegExp(`^workers \\(OMP_WORKERS\\) must be 1 while provider is ${OMP_PROVIDER}:.*${way}`),
      ),
    ]);
    expect(mistakesOf({ env: { ...env, OMP_WORKERS: '1' } })).toEqual([]);
  });
});
