import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { Embedder, ProviderModule, RankingOptions } from '#provider';
import { LIMIT_MS } from '../support/full.ts';
import { type GatewayOptions, openGateway, type Subject } from '../support/gateway.ts';
import { conformance } from './conformance.ts';
import { reopening } from './reopening.ts';

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
  /** Whether what is stored ends with the provider, as in a `Map`. Unset: it is there when the provider is opened again. */
  readonly volatile?: boolean;
  /** Of a service that shows writes late: makes it show all of them, as it does in time. Called before the provider is opened again. */
  settle?(): Promise<unknown>;
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
  /** Opens the backend of a run; `open` may be called again after its subject was closed. */
  const start = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'omp-test-'));
    let { close, settle, options = {}, volatile = false, ...prepared }: Prepared = {};
    const tidy = async () => {
      await close?.();
      await rm(folder, { recursive: true, force: true });
    };
    try {
      ({ close, settle, options = {}, volatile = false, ...prepared } = await prepare(folder));
    } catch (error) {
      await tidy();
      throw error;
    }
    const { without = [], ids, ...gateway } = prepared;
    const open = async (more: GatewayOptions = {}): Promise<Subject> => {
      const module = (context: Parameters<ProviderModule['open']>[1]) => provider.open(options, context);
      const subject = await openGateway(module, { ...gateway, data_dir: folder, ...more });
      const { tags, supports_supersession } = subject.capabilities.features;
      const undeclared = [...(tags ? [] : ['tags']), ...(supports_supersession ? [] : ['supersedes'])];
      return { ...subject, ids, without: [...without, ...undeclared] };
    };
    return { open, settle, tidy, volatile };
  };
  conformance(label, async ({ authenticator }) => {
    const { open, tidy } = await start();
    try {
      const subject = await open({ authenticator });
      return { ...subject, close: () => subject.close().finally(tidy) };
    } catch (error) {
      await tidy();
      throw error;
    }
  });
  reopening(label, start);
};
