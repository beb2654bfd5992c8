import { afterEach, describe, it } from 'vitest';
import { FULL } from '../support/full.ts';
import { type Mount, openMounted } from '../support/mounted.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { openSubject, type SubjectOptions } from '../support/subject.ts';
import { type CheckOptions, checkAgreement } from './check.ts';
import { openModel, openStore, type WorldStore } from './world.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED for another one or to repeat a failure. A run has 33 operations. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? (FULL ? 310 : 6));
const SEED = Number(process.env.OMP_TEST_SEED ?? 20_261_124);

type Open = Mount['open'];

const memory: Open = (options) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options });
const emulated: Open = (options) => openSubject({ provider: 'memory', options: { scopes: 'none' }, ...options });
const postgres: Open = (options) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options });
const pinecone: Open = (options) => openPineconeSubject({}, {}, options);

/** Scopes of the operations, beside which others stay in the root store. */
const MOUNTS = ['coding', 'a'];
/** Every caller reaches each store, but no memory by these: else a record there counts as absent (Decision 49). */
const REACH = MOUNTS.map((mount) => `*:${mount}/nothing/*`);
/** What Pinecone does not keep. */
const VERSIONS = ['versions', 'version', 'restore', 'purge', 'rollback'] as const;

/**
 * Memories spread over several stores give the same answers as in one. They are searched by vectors, which every store
 * compares alike.
 */
describe('several stores give the same answers as one', () => {
  const opened: WorldStore[] = [];
  afterEach(async () => {
    for (const { subject } of opened.splice(0)) await subject.close();
  });
  const check = async (root: Open, mounted: readonly Open[], options: Partial<CheckOptions> = {}) => {
    const model = await openModel();
    opened.push(model);
    const stores = mounted.map((open, at) => ({ name: `store-${at}`, mount: MOUNTS[at] as string, open }));
    const open = (more: Pick<SubjectOptions, 'authenticator'>) =>
      openMounted(root, stores, { mode: 'vector', ...more });
    const spread = { ...(await openStore('three stores', open)), mounts: MOUNTS };
    opened.push(spread);
    await checkAgreement(model, [spread], { runs: RUNS, seed: SEED, shrink: true, grants: REACH, ...options });
  };

  it('[Decision 49] [Decision 1] [Decision 3] [Decision 4] [Decision 14] [SPEC GET /memories/search order] postgres with Pinecone and memory', () =>
    // Pinecone does not count.
    check(postgres, [pinecone, memory], { skipped: ['stats', 'users', ...VERSIONS], etags: false }));
  it('[Decision 49] [Decision 37] [Decision 38] [Decision 11] memory with postgres and memory', () =>
    check(memory, [postgres, memory]));
  it.runIf(FULL)('[Decision 49] Pinecone with memory, whose scopes are emulated, and postgres', () =>
    check(pinecone, [emulated, postgres], {
      skipped: ['stats', 'users', 'audit', ...VERSIONS],
      etags: false,
      runs: Math.ceil(RUNS / 4),
    }),
  );
});
