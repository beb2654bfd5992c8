import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, vi } from 'vitest';
import type { Embedder, ProviderModule, RankingOptions } from '#provider';
import { LIMIT_MS } from '../support/full.ts';
import { openGateway, type Subject } from '../support/gateway.ts';
import { knownCallers, type Rights } from '../support/known-callers.ts';
import { accessSuite } from './access.suite.ts';
import { auditSuite } from './audit.suite.ts';
import { batchSuite } from './batch.suite.ts';
import { capabilitiesSuite } from './capabilities.suite.ts';
import { consistencySuite } from './consistency.suite.ts';
import { contextSuite } from './context.suite.ts';
import { deleteSuite } from './delete.suite.ts';
import { etagsSuite } from './etags.suite.ts';
import { explainFailures } from './failures.ts';
import { idempotencySuite } from './idempotency.suite.ts';
import { kitSuite } from './kit.suite.ts';
import { listSuite } from './list.suite.ts';
import { mapSuite } from './map.suite.ts';
import { recordsSuite } from './records.suite.ts';
import { scopesSuite } from './scopes.suite.ts';
import { searchSuite } from './search.suite.ts';
import type { Admit, GetSubject } from './subject.ts';
import { tagsSuite } from './tags.suite.ts';
import { timesSuite } from './times.suite.ts';
import { transferSuite } from './transfer.suite.ts';
import { updateSuite } from './update.suite.ts';
import { usersSuite } from './users.suite.ts';
import { validationSuite } from './validation.suite.ts';

const SUITES = [
  capabilitiesSuite,
  recordsSuite,
  batchSuite,
  updateSuite,
  deleteSuite,
  etagsSuite,
  listSuite,
  timesSuite,
  scopesSuite,
  tagsSuite,
  searchSuite,
  contextSuite,
  validationSuite,
  accessSuite,
  auditSuite,
  usersSuite,
  transferSuite,
  mapSuite,
  idempotencySuite,
  consistencySuite,
];

/** The backend of one run of the suite. */
export interface Prepared {
  /** Options of the provider. */
  readonly options?: unknown;
  /** How search ranks; unset: hybrid. With `keyword` there is no embedder. */
  readonly mode?: RankingOptions['mode'];
  /** Unset: one of the suite, with 64 dimensions, which takes microseconds and knows no meaning. */
  readonly embedder?: Embedder;
  /** Fields of a memory that the store cannot keep, such as `confidence`: `check` and the writes of the provider reject them by name. `extensions` stands for all `x-` keys. */
  readonly without?: readonly string[];
  /** What the ids of the store look like; unset: as `newIdentity` makes them. */
  readonly ids?: RegExp;
  /** Ends what was started for the run, after the provider is closed. */
  close?(): Promise<unknown>;
}

/**
 * Declares the tests that every provider must pass: call it in a test file of vitest. The gateway is opened on the provider, and spoken to as
 * a client would. What the provider does not declare is skipped. `prepare` makes the backend ready; it gets an empty folder, the provider's
 * `data_dir`, which is removed after the tests. `label` names the run.
 */
export const providerTests = (
  provider: ProviderModule,
  prepare: (folder: string) => Prepared | Promise<Prepared> = () => ({}),
  label: string = provider.name,
): void => {
  // By default vitest ends a test after five seconds, which a backend on a busy machine may need.
  vi.setConfig({ testTimeout: LIMIT_MS, hookTimeout: LIMIT_MS });
  describe(label, () => {
    const callers = knownCallers();
    let opened: Subject | undefined;
    let tidy = async () => {};
    beforeAll(async () => {
      const folder = await mkdtemp(join(tmpdir(), 'omp-test-'));
      let { close, options = {}, without = [], ids, ...gateway }: Prepared = {};
      tidy = async () => {
        await opened?.close();
        await close?.();
        await rm(folder, { recursive: true, force: true });
      };
      ({ close, options = {}, without = [], ids, ...gateway } = await prepare(folder));
      const { authenticator } = callers;
      const subject = await openGateway((context) => provider.open(options, context), {
        ...gateway,
        authenticator,
        data_dir: folder,
      });
      const { tags, supports_supersession } = subject.capabilities.features;
      const undeclared = [...(tags ? [] : ['tags']), ...(supports_supersession ? [] : ['supersedes'])];
      opened = { ...subject, ids, without: [...without, ...undeclared] };
    });
    afterAll(() => tidy());
    const subject: GetSubject = () => {
      if (opened === undefined) throw new Error(`${label} did not open`);
      return opened;
    };
    const admit: Admit = (rights: Rights) => subject().as(callers.admit(rights));
    beforeEach(explainFailures(subject));
    kitSuite(label, subject, callers.admit({ grants: ['*:elsewhere'] }));
    for (const suite of SUITES) suite(subject, admit);
  });
};
