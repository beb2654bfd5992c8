import type { Embedder, EmbedderIdentity } from './embedder.ts';
import type { ProviderContext } from './provider.ts';

/** Maintenance embeds stored contents itself. */
export interface MaintenanceContext extends ProviderContext {
  /** Undefined when `ranking.mode` is `keyword`; for `diagnose` also when the embedder does not work. */
  readonly embedder: Embedder | undefined;
}

/** One thing that was looked at. Holds no contents, user ids or credentials. */
export interface Finding {
  readonly area:
    | 'configuration'
    | 'connection'
    | 'privileges'
    | 'extension'
    | 'mapping'
    | 'embedding'
    | 'ingestion'
    | 'indexes'
    | 'size';
  /** `problem`: the gateway would not start, or not serve. `warning`: it serves, but not as well as it could. */
  readonly level: 'ok' | 'warning' | 'problem';
  /** One sentence without its full stop. */
  readonly message: string;
  /** What an operator may run against it, statement by statement, each with its reason. */
  readonly remedies?: readonly Remedy[];
}

export interface Remedy {
  readonly sql: string;
  readonly reason: string;
}

/** How stored memories are to be embedded anew, by the embedder of the provider's context. */
export interface ReembedRequest {
  /** Only count; write nothing. */
  readonly dry_run: boolean;
  /** Give up what was begun for another embedder. */
  readonly restart: boolean;
  /** Memories read, embedded and written at a time. */
  readonly batch_size: number;
  /** Most memories sent to the embedder in any minute; undefined: as fast as it goes. */
  readonly per_minute: number | undefined;
  /** Aborted: stop after the batch under way; another run goes on from there. */
  readonly signal: AbortSignal;
  /** Told after every batch. */
  progress(state: ReembedState): void;
}

export interface ReembedState {
  /** Memories that have their new vector, those of an earlier run included. */
  readonly done: number;
  readonly total: number;
}

export interface ReembedOutcome extends ReembedState {
  /** Null: there were no vectors. */
  readonly from: EmbedderIdentity | null;
  readonly to: EmbedderIdentity;
  /** Memories embedded by this run. */
  readonly embedded: number;
  /** Code points of the memories still to be embedded; null: not counted, which only a dry run does. */
  readonly characters: number | null;
  /** Whether searches use vectors of `to` from now on; false after a dry run, or when stopped before the end. */
  readonly switched: boolean;
}
