import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { type OwnersDatabase, openOwnersDatabase } from './database.ts';
import { documentedEnvironment } from './documented.ts';
import { openAiServer } from './openai.ts';
import { NOT_INSTALLED } from './owner-libraries.ts';
import { type RunningExisting, serveDocumented } from './preset-suite.ts';

export interface BesideLibrary {
  readonly db: OwnersDatabase;
  readonly openai: Awaited<ReturnType<typeof openAiServer>>;
  /** The gateway as the page says, on tables that the library has made; closed with the suite. */
  serve(more?: Readonly<Record<string, string>>): Promise<RunningExisting['client']>;
  /** Closed with the suite, before the database. */
  closing(close: () => Promise<unknown>): void;
}

export interface LibrarySuite {
  /** For use in tests. */
  beside(): BesideLibrary;
  /** What the library does before the first test. */
  prepare(work: (beside: BesideLibrary) => Promise<void>): void;
}

/** Tests of a database that a library itself fills, and a gateway beside it. */
export function librarySuite(title: string, page: string, tests: (suite: LibrarySuite) => void): void {
  const missing = SERVER_URL === '' ? NO_SERVER : NOT_INSTALLED;
  describe(title, () => {
    let opened: BesideLibrary | undefined;
    const preparations: ((beside: BesideLibrary) => Promise<void>)[] = [];
    const open: (() => Promise<unknown>)[] = [];
    beforeAll(async () => {
      if (missing !== undefined) return;
      const [db, openai] = await Promise.all([openOwnersDatabase(), openAiServer()]);
      const env = { ...documentedEnvironment(page), DATABASE_URL: db.url, OPENAI_BASE_URL: openai.base_url };
      open.push(db.close, openai.close);
      opened = {
        db,
        openai,
        async serve(more = {}) {
          const running = await serveDocumented(env, more);
          open.push(running.close);
          return running.client;
        },
        closing: (close) => void open.push(close),
      };
      for (const prepare of preparations) await prepare(opened);
    });
    afterAll(async () => {
      for (const close of open.reverse()) await close();
    });
    beforeEach(({ skip }) => {
      if (missing !== undefined) skip(missing);
    });
    tests({ beside: () => opened as BesideLibrary, prepare: (work) => void preparations.push(work) });
  });
}
