import { afterAll, beforeAll, describe } from 'vitest';
import { FULL } from '../support/full.ts';
import { openMounted } from '../support/mounted.ts';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject } from '../support/subject.ts';
import { type Bench, type Open, openBench } from './bench.ts';
import { existenceSuite, rightsSuite } from './matrix.suite.ts';

/**
 * The access matrix shows, case by case, that a key gets what it was granted, no more and no less, and that nothing tells
 * a record out of reach from an unknown id. Globs against each other are in `test/toolbox/scope-glob.test.ts`, random data
 * and grants in `view.test.ts`.
 */
const matrix = (label: string, open: Open, mounts: readonly string[] = []) =>
  describe(`access matrix, ${label}`, () => {
    let opened: Bench | undefined;
    beforeAll(async () => {
      opened = await openBench(open, undefined, mounts);
    });
    afterAll(() => opened?.subject.close());
    const bench = (): Bench => {
      if (opened === undefined) throw new Error(`${label} did not open`);
      return opened;
    };
    rightsSuite(bench);
    existenceSuite(bench);
  });

matrix('memory', (options) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options }));
matrix('memory with emulated scopes', (options) =>
  openSubject({ provider: 'memory', options: { scopes: 'none' }, ...options }),
);
matrix('embedded postgres', (options) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options }));
/** Two stores mounted where the scopes of the cases are neighbours. */
const withMounts: Open = (options) =>
  openMounted(
    (own) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...own }),
    [
      {
        name: 'code',
        mount: 'coding',
        open: (own) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...own }),
      },
      {
        name: 'secret',
        mount: 'coding-secret',
        open: (own) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...own }),
      },
    ],
    options,
  );
matrix('three stores', withMounts, ['coding', 'coding-secret']);
if (FULL && SERVER_URL !== '') matrix('postgres on a server', (options) => openServerSubject({}, undefined, options));
