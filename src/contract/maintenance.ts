import type { Embedder, EmbedderIdentity } from './embedder.ts';
import type { ProviderContext } from './provider.ts';

/** The context of maintenance commands, which embed stored contents themselves. */
export interface MaintenanceContext extends ProviderContext {
  /** Undefined when `ranking.mode` is `keyword`; for `diagnose` also when the embedder does not work. */
  readonly embedder: Embedder | undefined;
  /** For `diagnose`: scopes at which other stores hide what this one holds there and below. Absent: none. */
  readonly mounts?: readonly string[];
}

/** The result of one check. Holds no contents, user ids or credentials. */
export interface Finding {
  readonly area:
    | 'configuration'
    | 'connection'
    | 'privileges'
    | 'extension'
    | 'mapping'
    | 'embedding'
    | 'ingestion'
    | 'changes'
    | 'indexes'
    | 'mounts'
    | 'freeze'
    | 'size';
  /** `problem`: the gateway cannot start or cannot serve. `warning`: it serves with limitations. */
  readonly level: 'ok' | 'warning' | 'problem';
  /** One sentence without a full stop. */
  readonly message: string;
  /** Statements that an operator may run to resolve the finding. */
  readonly remedies?: readonly Remedy[];
}

/** The finding about the memories that a store mounted at this scope hides. */
export const hiddenBy = (mount: string, memories: number): Finding =>
  memories === 0
    ? { area: 'mounts', level: 'ok', message: `nothing is stored at or below ${mount}, where another store is mounted` }
    : {
        area: 'mounts',
        level: 'warning',
        message: `the store mounted at ${mount} hides ${memories === 1 ? 'one memory' : `${memories} memories`} at or below that scope; mount it elsewhere, or give them another scope before`,
      };

export interface Remedy {
  readonly sql: string;
  readonly reason: string;
}

/** Options of re-embedding stored memories with the embedder of the context. */
export interface ReembedRequest {
  /** Counts only; writes nothing. */
  readonly dry_run: boolean;
  /** Discards an unfinished run for another embedder. */
  readonly restart: boolean;
  /** Memories per batch. */
  readonly batch_size: number;
  /** Maximum memories sent to the embedder per minute; undefined: unlimited. */
  readonly per_minute: number | undefined;
  /** When aborted, the run stops after the current batch; another run continues from there. */
  readonly signal: AbortSignal;
  /** Called after every batch. */
  progress(state: ReembedState): void;
}

export interface ReembedState {
  /** Memories with their new vector, including those of an earlier run. */
  readonly done: number;
  readonly total: number;
}

export interface ReembedOutcome extends ReembedState {
  /** Null: there were no vectors. */
  readonly from: EmbedderIdentity | null;
  readonly to: EmbedderIdentity;
  /** Memories embedded by this run. */
  readonly embedded: number;
  /** Code points of the memories that remain; null: not counted, since only a dry run counts them. */
  readonly characters: number | null;
  /** Whether searches now use the vectors of `to`; false after a dry run or an unfinished run. */
  readonly switched: boolean;
}

/** Bytes of the file, and the milliseconds for which requests of a gateway waited. */
export type BackupOutcome = readonly [bytes: number, ms: number];
