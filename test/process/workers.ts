import { execFileSync } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { randomName } from '../postgres/store.ts';
import { onServer } from '../rate-limit/postgres-table.ts';
import { type Client, clientOf } from '../support/client.ts';
import { copyEmptyPostgres } from '../support/empty-postgres.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { type RunningGateway, temporaryFolder } from './gateway.ts';

export type Environment = Readonly<Record<string, string>>;

/** Where workers keep memories, by name. */
export const DATABASES: Readonly<
  Record<string, { readonly missing: string; readonly make: () => Promise<Environment> }>
> = {
  embedded: {
    missing: '',
    async make() {
      const OMP_DATA_DIR = temporaryFolder();
      await copyEmptyPostgres(OMP_DATA_DIR);
      return { OMP_DATA_DIR };
    },
  },
  server: {
    missing: SERVER_URL === '' ? NO_SERVER : '',
    async make() {
      const OMP_POSTGRES_SCHEMA = randomName();
      onTestFinished(() => onServer(SERVER_URL, `drop schema if exists "${OMP_POSTGRES_SCHEMA}" cascade`));
      return { DATABASE_URL: SERVER_URL, OMP_POSTGRES_SCHEMA };
    },
  },
};

/** The processes of its workers at this moment. */
export function workersOf({ child }: Pick<RunningGateway, 'child'>): number[] {
  const processes = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n');
  return processes
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent, state]) => Number(parent) === child.pid && !state?.startsWith('Z'))
    .map(([pid]) => Number(pid));
}

export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** The numbers of the workers that answered requests so far. */
export const answering = ({ printed }: Pick<RunningGateway, 'printed'>): number[] =>
  [...new Set([...printed().matchAll(/"worker":(\d+),.*"msg":"request"/g)].map(([, number]) => Number(number)))].sort();

/**
 * A client for whom a connection that is cut, or is not taken, is like an answer that the backend is down: what was asked
 * for has happened or has not.
 */
export const patientClient = ({ url }: Pick<RunningGateway, 'url'>): Client =>
  clientOf((path, init) =>
    fetch(url + path, init).catch((error: unknown) => {
      if (!(error instanceof TypeError)) throw error;
      return Response.json({ error: { code: 'provider_error', provider: 'postgres' } }, { status: 502 });
    }),
  );
