import { cpSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** By its name: what damages a data folder, and what the error of the next start says. */
type Damages = Readonly<Record<string, readonly [damage: (folder: string) => void, error: RegExp]>>;

/** Damages that the gateway finds before it starts the engine. It changes nothing in the folder. */
export const FOLDER_DAMAGES: Damages = {
  'PG_VERSION is missing': [
    (folder) => rmSync(join(folder, 'postgres/PG_VERSION')),
    /not complete: PG_VERSION is missing.*restore the whole data folder from a backup.*OMP_DATA_DIR/,
  ],
  'PG_VERSION is missing, and the marker': [
    (folder) => {
      rmSync(join(folder, 'postgres/PG_VERSION'));
      rmSync(join(folder, 'omp-gateway.json'));
    },
    /not complete: PG_VERSION is missing.*restore/,
  ],
  'PG_VERSION is empty': [(folder) => truncateSync(join(folder, 'postgres/PG_VERSION')), /PG_VERSION is missing/],
  'its control file is missing': [
    (folder) => rmSync(join(folder, 'postgres/global/pg_control')),
    /not complete: global\/pg_control is missing.*restore/,
  ],
  'its configuration is missing': [
    (folder) => rmSync(join(folder, 'postgres/postgresql.conf')),
    /not complete: postgresql\.conf is missing.*restore/,
  ],
  'the database is missing': [
    (folder) => rmSync(join(folder, 'postgres'), { recursive: true }),
    /the database in .* is missing: omp-gateway\.json refers to it.*restore the whole data folder from a backup/,
  ],
  'the folder of the database is empty': [
    (folder) => {
      rmSync(join(folder, 'postgres'), { recursive: true });
      mkdirSync(join(folder, 'postgres'));
    },
    /not complete: PG_VERSION is missing.*restore/,
  ],
  'its files lie one folder too high': [
    (folder) => {
      cpSync(join(folder, 'postgres'), folder, { recursive: true });
      rmSync(join(folder, 'postgres'), { recursive: true });
      rmSync(join(folder, 'omp-gateway.json'));
    },
    /holds the files of a database itself; move them to .*postgres/,
  ],
  'another engine made it': [
    (folder) => writeFileSync(join(folder, 'postgres/PG_VERSION'), '17\n'),
    /created by PostgreSQL 17, this omp-gateway has PostgreSQL 18; .*export memories.*import memories/,
  ],
  'the marker is of another database': [
    (folder) =>
      writeFileSync(
        join(folder, 'omp-gateway.json'),
        JSON.stringify({ id: '00000000-0000-4000-8000-000000000000', postgres: '18', keys: true }),
      ),
    /belong to two different databases; restore.*remove .*omp-gateway\.json/,
  ],
  'the marker is damaged': [
    (folder) => truncateSync(join(folder, 'omp-gateway.json'), 10),
    /omp-gateway\.json is not valid; restore/,
  ],
};

/** Damages that only the engine finds. */
export const DATABASE_DAMAGES: Damages = {
  'the write-ahead log is missing': [
    (folder) => {
      rmSync(join(folder, 'postgres/pg_wal'), { recursive: true });
      mkdirSync(join(folder, 'postgres/pg_wal'));
    },
    /checkpoint record/,
  ],
  'the control file is cut off': [
    (folder) => truncateSync(join(folder, 'postgres/global/pg_control'), 100),
    /pg_control/,
  ],
};
