import { rm } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import type { Embedder, MaintenanceContext, ReembedOutcome, ReembedRequest } from '#contract';
import { reembed } from '../../providers/postgres/commands/reembed.ts';
import { CLOCK, type Clock } from '../../providers/postgres/commands/reembed-retry.ts';
import { Options } from '../../providers/postgres/postgres-options.ts';
import { type Names, toNames } from '../../providers/postgres/tables/names.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { SERVER_URL } from '../support/postgres-server.ts';
import { openStoreOf, type Store, type WritableStore } from '../support/stores.ts';
import { makeDataDir, RECORDED, recordingLog } from '../support/subject.ts';
import { type TestDatabase, testDatabase } from './databases.ts';
import { call, memoryOf } from './store.ts';

/** Texts that share spelling are near each other, to every model in a way of its own. */
export function embedderOf(model: string, dimensions = 64): Embedder & { readonly seen: string[] } {
  const inner = hashingEmbedder(dimensions);
  const seen: string[] = [];
  return {
    ...inner,
    model,
    seen,
    embed(texts, purpose, about) {
      if (purpose === 'document') seen.push(...texts);
      return inner.embed(
        texts.map((text) => `${model} ${[...text].join(model.slice(-1))}`),
        purpose,
        about,
      );
    },
  };
}

/** The embedded engine takes seconds to start: where there is a server, it is asked the main things alone. */
export const ENGINE = SERVER_URL === '' ? 'embedded' : 'server';
export const ENGINES = ['embedded', ...(SERVER_URL === '' ? [] : ['server' as const])] as const;

/** Tables of their own, and what is done with them from outside and by the gateway. */
export interface Subject {
  /** Null: keyword mode. */
  open(embedder: Embedder | null, options?: object): Promise<WritableStore>;
  reembed(embedder: Embedder | undefined, request?: Partial<ReembedRequest>, clock?: Clock): Promise<ReembedOutcome>;
}

export interface ServerSubject extends Subject {
  readonly url: string;
  readonly names: Names;
  sql: TestDatabase['sql'];
}

const contextOf = (data_dir: string, embedder: Embedder | null | undefined): MaintenanceContext => ({
  embedder: embedder ?? undefined,
  ranking: { mode: embedder ? 'hybrid' : 'keyword', keyword_weight: 0.5 },
  audit: RECORDED,
  data_dir,
  log: recordingLog(),
});

const subjectOn = (data_dir: string, options: object, keep: (provider: Store) => void): Subject => {
  return {
    async open(embedder, more) {
      const opened = await openStoreOf('postgres', { ...options, ...more }, contextOf(data_dir, embedder));
      let closed: Promise<void> | undefined;
      const close = () => {
        closed ??= opened.close();
        return closed;
      };
      const provider = { ...opened, close } as WritableStore;
      keep(provider);
      return provider;
    },
    reembed: (embedder, request, clock = CLOCK) =>
      reembed(
        Options.parse(options),
        contextOf(data_dir, embedder),
        {
          dry_run: false,
          restart: false,
          batch_size: 7,
          per_minute: undefined,
          signal: new AbortController().signal,
          progress() {},
          ...request,
        },
        clock,
      ),
  };
};

/** In a data folder that is gone after the test. Whoever opens it closes it: it belongs to one at a time. */
export async function embeddedSubject(): Promise<Subject> {
  const folder = await makeDataDir();
  const opened: Store[] = [];
  onTestFinished(async () => {
    for (const provider of opened) await provider.close();
    await rm(folder, { recursive: true, force: true });
  });
  return subjectOn(folder, {}, (provider) => opened.push(provider));
}

/**
 * A database of its own on the server, gone after the test: a concurrent index build waits for every transaction in its
 * database, those of other tests too.
 */
export async function serverSubject(options: object = {}): Promise<ServerSubject> {
  const { url, sql } = await testDatabase(SERVER_URL, `template template0 encoding 'UTF8'`);
  await sql('create extension vector');
  const opened: Store[] = [];
  onTestFinished(async () => {
    for (const provider of opened) await provider.close();
  });
  return {
    ...subjectOn('/nowhere', { url, ...options }, (provider) => opened.push(provider)),
    url,
    names: toNames('omp', 'public'),
    sql,
  };
}

export const subjectFor = (engine: (typeof ENGINES)[number]): Promise<Subject> =>
  engine === 'embedded' ? embeddedSubject() : serverSubject();

const WORDS = ['apple', 'bridge', 'candle', 'desert', 'engine', 'forest', 'garden', 'harbour', 'island', 'jungle'];
export const contentOf = (i: number): string => `${WORDS[i % 10]} ${WORDS[(i * 7) % 9]} number ${i}`;
const USERS = ['ana', 'ben', 'cem'] as const;
const userOf = (i: number): string => USERS[i % USERS.length] as string;

/** Adds memories `from` to `to`, spread over the users. */
export async function addMemories(provider: WritableStore, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await provider.add({ input: memoryOf(userOf(i), contentOf(i)) }, call);
}

/** What everybody finds, by content: the same on a store that had this embedder from the beginning. */
export async function answersOf(provider: Store): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const user_id of USERS) {
    for (const text of ['apple bridge', 'number 12', 'harbour']) {
      const hits = await provider.search?.({ user_id, text, tags: [], within: null, max_bytes: 1e9, limit: 100 }, call);
      const found = (hits ?? []).map(({ memory, score }) => ({
        score,
        content: memory.content,
        model: memory.embedding_model,
      }));
      answers.push(found.sort((a, b) => b.score - a.score || (a.content < b.content ? -1 : 1)));
    }
  }
  return answers;
}

/** The answers of a fresh store with these contents; on every provider they are the same. */
export async function expectedAnswers(embedder: Embedder, memories: readonly { user_id: string; content: string }[]) {
  const context = contextOf('/nowhere', embedder);
  const provider = (await openStoreOf('memory', {}, context)) as WritableStore;
  for (const { user_id, content } of memories) await provider.add({ input: memoryOf(user_id, content) }, call);
  return answersOf(provider);
}

export const memoriesUpTo = (to: number) =>
  Array.from({ length: to }, (_, i) => ({ user_id: userOf(i), content: contentOf(i) }));
