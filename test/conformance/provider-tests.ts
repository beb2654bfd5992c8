import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Embedder, ProviderModule, RankingOptions } from '#provider';
import { openGateway } from '../support/gateway.ts';
import { conformance } from './conformance.ts';

/** The backend of one run of the suite. */
export interface Prepared {
  /** Options of the provider. */
  readonly options?: unknown;
  /** How search ranks; unset: hybrid. With `keyword` there is no embedder. */
  readonly mode?: RankingOptions['mode'];
  /** Unset: one of the suite, with 64 dimensions, which takes microseconds and knows no meaning. */
  readonly embedder?: Embedder;
  /** Fields of a memory that the store cannot keep, such as `confidence`: the provider rejects them by name. `extensions` stands for all `x-` keys. */
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
): void =>
  conformance(label, async ({ authenticator }) => {
    const folder = await mkdtemp(join(tmpdir(), 'omp-test-'));
    let { close, options = {}, without, ids, ...gateway }: Prepared = {};
    const tidy = async () => {
      await close?.();
      await rm(folder, { recursive: true, force: true });
    };
    try {
      ({ close, options = {}, without, ids, ...gateway } = await prepare(folder));
      const open = (context: Parameters<ProviderModule['open']>[1]) => provider.open(options, context);
      const subject = await openGateway(open, { ...gateway, authenticator, data_dir: folder });
      return { ...subject, without, ids, close: () => subject.close().finally(tidy) };
    } catch (error) {
      await tidy();
      throw error;
    }
  });
