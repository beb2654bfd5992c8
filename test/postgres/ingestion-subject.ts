import { onTestFinished } from 'vitest';
import { type Embedder, OmpError, providerError } from '#contract';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openSubject, type Subject } from '../support/subject.ts';
import { openStore, type TestDatabase, until } from './store.ts';

/** What becomes of a text: its vector, when this resolves; or this error. */
export type Fate = (text: string) => Promise<void> | void;

export interface TestEmbedder extends Embedder {
  /** Documents that were asked for, in order. */
  readonly asked: string[];
  fate: Fate;
}

export const DOWN = () => {
  throw providerError('embeddings', 'The embedding service failed.');
};
export const REFUSED = () => {
  throw new OmpError('invalid_request', 'The embedding service rejected this text.', { provider: 'embeddings' });
};

/** Each text for itself, as it comes from behind the batches of a real embedder. */
export function testEmbedder(fate: Fate = () => {}): TestEmbedder {
  const inner = hashingEmbedder();
  const embedder: TestEmbedder = {
    ...inner,
    asked: [],
    fate,
    async embed(texts, purpose, call) {
      if (purpose === 'query') return inner.embed(texts, purpose, call);
      embedder.asked.push(...texts);
      const gone = new Promise<never>((_, reject) => {
        call.signal.addEventListener('abort', () => reject(call.signal.reason), { once: true });
      });
      // Nobody may be waiting any more.
      gone.catch(() => {});
      await Promise.race([Promise.all(texts.map((text) => embedder.fate(text))), gone]);
      return inner.embed(texts, purpose, call);
    },
  };
  return embedder;
}

/** Lets those go on that came, one by one or all. */
export function gates() {
  const waiting = new Map<string, () => void>();
  return {
    waiting,
    fate: (text: string) => new Promise<void>((go) => waiting.set(text, go)),
    async open(text: string) {
      await until(async () => waiting.has(text));
      waiting.get(text)?.();
    },
  };
}

interface QueueRow {
  readonly memory_id: string;
  readonly status: string;
  readonly attempts: number;
  readonly error: string | null;
}

export interface IngestionSubject {
  readonly store: TestDatabase;
  /** The whole gateway on these tables, spoken to by HTTP in process. Closed after the test. */
  gateway(embedder: Embedder, options?: object): Promise<Subject>;
  queue(): Promise<QueueRow[]>;
  /** Waits until no vector is computed any more. */
  drained(): Promise<void>;
}

export async function ingestionSubject(): Promise<IngestionSubject> {
  const store = await openStore();
  const subjects: Subject[] = [];
  onTestFinished(async () => {
    for (const subject of subjects) await subject.close();
    await store.close();
  });
  const queue = () =>
    store.sql<QueueRow>(
      `select memory_id, status, attempts, error from ${store.names.ingestion} order by queued_at, memory_id`,
    );
  return {
    store,
    async gateway(embedder, options = {}) {
      const { url, schema } = store;
      // The engine has one session for all.
      const where = { url, schema, connections: 1, ingestion: 'async', ...options };
      const subject = await openSubject({ provider: 'postgres', options: where, embedder });
      let closed: Promise<void> | undefined;
      const close = () => {
        closed ??= subject.close();
        return closed;
      };
      const once = { ...subject, close };
      subjects.push(once);
      return once;
    },
    queue,
    drained: () => until(async () => (await queue()).every(({ status }) => status === 'failed')),
  };
}
