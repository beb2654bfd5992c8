import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Provider } from '#contract';
import type { ProviderName } from '../../src/config/settings.ts';
import { openProvider } from '../../src/registry.ts';
import { copyEmptyPostgres } from './empty-postgres.ts';
import { type GatewayOptions, openGateway, type Subject, UNHURRIED_MS } from './gateway.ts';

export {
  APP_LIMITS,
  clientTo,
  freshUser,
  gateOn,
  type LogLine,
  laterMoment,
  RECORDED,
  recordingLog,
  type Subject,
  VERSIONED,
} from './gateway.ts';

export interface SubjectOptions extends GatewayOptions {
  readonly provider: ProviderName;
  readonly options: object;
  /** Changes the provider before it is composed, to let it err in ways it never would. */
  readonly alter?: (provider: Provider) => Provider;
  /** Defaults to a folder of its own, removed on close; a given one stays. */
  readonly data_dir?: string;
}

export const UNHURRIED_POSTGRES = { acquire_timeout_ms: UNHURRIED_MS, query_timeout_ms: UNHURRIED_MS } as const;
export const UNHURRIED_PINECONE = { timeout_ms: UNHURRIED_MS } as const;
const UNHURRIED: Readonly<Partial<Record<ProviderName, object>>> = {
  postgres: UNHURRIED_POSTGRES,
  pinecone: UNHURRIED_PINECONE,
};

/** A data folder whose embedded Postgres needs no initialising. */
export async function makeDataDir(parent = tmpdir()): Promise<string> {
  const folder = await mkdtemp(join(parent, 'omp-test-'));
  await copyEmptyPostgres(folder);
  return folder;
}

/** Opens a provider of the registry in a gateway. */
export const openSubject = async (wanted: SubjectOptions): Promise<Subject> => {
  // Copying a database takes a while: only where one is going to be started.
  const started = wanted.provider === 'postgres' && !('url' in wanted.options) && wanted.data_dir === undefined;
  const data_dir = started ? await makeDataDir() : (wanted.data_dir ?? tmpdir());
  const { alter = (provider) => provider } = wanted;
  const options = { ...UNHURRIED[wanted.provider], ...wanted.options };
  const tidy = async () => {
    if (started) await rm(data_dir, { recursive: true, force: true });
  };
  const subject = await openGateway(async (context) => alter(await openProvider(wanted.provider, options, context)), {
    ...wanted,
    data_dir,
  }).catch(async (error: unknown) => {
    await tidy();
    throw error;
  });
  return {
    ...subject,
    async close() {
      await subject.close();
      await tidy();
    },
  };
};
