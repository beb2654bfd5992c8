import type { Call } from './call.ts';

/** What the texts of one caller took on one day, at an embedding service that one pays (Decision 63). */
export interface EmbeddingUsage {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  /** `Caller.app`. Null: anonymous, or the gateway itself. */
  readonly app: string | null;
  readonly model: string;
  /** Texts that the service has embedded. */
  readonly texts: number;
  /** Null: unknown, because the service did not report them for all texts. */
  readonly tokens: number | null;
  /** Requests that reached the service, with retries and failures. */
  readonly requests: number;
}

/** What an embedder has used since the start. */
export interface UsageTotals {
  readonly texts: number;
  /** Those that the service reported. */
  readonly tokens: number;
  /** Texts whose tokens it did not report. */
  readonly texts_without_tokens: number;
  readonly requests: number;
}

/** Counts what an embedder uses. */
export interface UsageMeter {
  /** Since the last call: one row for each day and app. */
  take(): EmbeddingUsage[];
  totals(): UsageTotals;
}

/** What identifies a row. */
export type UsageRow = Pick<EmbeddingUsage, 'day' | 'app' | 'model'>;

export interface UsageQuery {
  /** Days, inclusive. */
  readonly since: string;
  readonly until: string;
  /** Rows after this one; undefined: from the first. */
  readonly after?: UsageRow | undefined;
  readonly limit: number;
}

export interface UsageStore {
  /** Adds these to what is stored: one row for each day, app and model. */
  add(rows: readonly EmbeddingUsage[], call: Call): Promise<void>;
  /** Newest day first; those of a day in an order of their own that stays. */
  read(query: UsageQuery, call: Call): Promise<EmbeddingUsage[]>;
}
