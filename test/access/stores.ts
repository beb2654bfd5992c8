import type { RankingOptions } from '#contract';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject, type Subject, type SubjectOptions } from '../support/subject.ts';

/** A provider that random scenes are played on. */
export interface Store {
  readonly label: string;
  readonly mode: RankingOptions['mode'];
  /** Of the runs; the slower ones get fewer. */
  readonly share: number;
  readonly open: (more: Omit<SubjectOptions, 'provider' | 'options'>) => Promise<Subject>;
}

type More = Parameters<Store['open']>[0];
const memory = (scopes: 'native' | 'none') => (more: More) =>
  openSubject({ provider: 'memory', options: { scopes }, ...more });
const embedded = (more: More) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...more });
const server = (more: More) => openServerSubject({}, more.mode, more);

/** Under emulated scopes rarity counts hidden records too (Decision 21), so vectors alone rank there. */
export const STORES: readonly Store[] = [
  { label: 'memory', mode: 'hybrid', share: 2, open: memory('native') },
  { label: 'memory', mode: 'keyword', share: 1, open: memory('native') },
  { label: 'memory with emulated scopes', mode: 'vector', share: 1, open: memory('none') },
  { label: 'embedded postgres', mode: 'hybrid', share: 0.5, open: embedded },
  ...(SERVER_URL === '' ? [] : [{ label: 'postgres on a server', mode: 'keyword' as const, share: 0.5, open: server }]),
];
