import { dataFolder } from '../process/gateway.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';

/** The Postgres of a gateway that is killed. */
export const POSTGRES_STORES = ['embedded', 'server'] as const;

/** Settings of a gateway on a new store. Skips the test where there are no programs of a server. */
export async function settingsOn(
  store: (typeof POSTGRES_STORES)[number],
  skip: (condition: boolean, note: string) => void,
): Promise<Record<string, string>> {
  if (store === 'embedded') return { OMP_DATA_DIR: await dataFolder() };
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const cluster = await createCluster();
  await cluster.start();
  return { DATABASE_URL: cluster.url };
}
