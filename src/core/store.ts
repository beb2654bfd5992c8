import type {
  BatchOutcome,
  Call,
  Embedder,
  EmbedderIdentity,
  EraseRequest,
  ImportRequest,
  LimitsOf,
  Memory,
  MemoryPatch,
  NewMemory,
  OmpError,
  Provider,
  Ref,
  SearchHit,
  SearchQuery,
  Vector,
  VersionStore,
} from '#contract';
import type { UsageReader } from './embedding-usage.ts';
import type { StoreErasure } from './erasure.ts';
import type { RequestKey } from './idempotency.ts';

/*
 * What the gateway asks: a provider with its embedder, or several of them as one.
 */

/** A query whose vector need not be computed yet. */
export type TextQuery = Omit<SearchQuery, 'vector'> & { readonly vector?: Vector | undefined };

/** The members of a provider that need no vectors. */
type WithoutVectors = Omit<
  Provider,
  | 'check'
  | 'add'
  | 'batch'
  | 'keyUse'
  | 'update'
  | 'search'
  | 'erase'
  | 'holdings'
  | 'import'
  | 'ingestion'
  | 'versions'
  | 'embeddingUsage'
>;

/** A store that is mounted at a scope, in its own names (Decision 48). */
export interface MountedStore {
  readonly name: string;
  readonly mount: string;
  /** The kind of its provider. */
  readonly provider: string;
  /** Whether lists and searches fail if it fails. If not, they leave it out and say so. */
  readonly required: boolean;
  /** Factor of its scores. */
  readonly weight: number;
  /** Stores with the same embedder share one. */
  readonly embedder: Embedder | undefined;
  /** Another one once a store that could not be opened at the start is open. */
  current(): Store;
}

/** What a rollback, retention or the file of a person reads of a store, and whether it can change it: changes go through `Access.store`, which stamps them. */
export interface StoreReads extends Pick<Store, 'capabilities' | 'list' | 'export'> {
  readonly versions?: Omit<NonNullable<Store['versions']>, 'purge'> | undefined;
  readonly update?: unknown;
  readonly delete?: unknown;
}

/** One of several stores, in the names of the gateway. */
export interface StorePart {
  readonly name: string;
  readonly store: StoreReads;
  /** Undefined: the store is optional and failed, and the answer names it as left out. */
  ask<Result>(call: Call, work: (call: Call) => Promise<Result>): Promise<{ readonly result: Result } | undefined>;
}

/** The stores of a gateway that has several, for what concerns one of them. */
interface Mounts {
  /** The root store and the others, in their fixed order. */
  readonly parts: readonly StorePart[];
  readonly root: Store;
  readonly stores: readonly MountedStore[];
  /** The store that a record of this scope belongs to. */
  ofScope(scope: string | null): Store;
  /** The store of the record with this id, and its mount; undefined: the root store. */
  ofId(id: string): { readonly store: Store; readonly mount: string } | undefined;
  /** `get` as a part of a larger answer: leaves out an optional store that fails or is slow. */
  find: Store['get'];
  /** Writes what the log of the root store lacks of changes in mounted stores. Closes no store. */
  close(): Promise<void>;
}

interface Limited {
  readonly limits?: LimitsOf | undefined;
}

interface Keyed extends Limited {
  readonly key?: RequestKey | undefined;
  /** Called with the place of an input whose memory an earlier request with the key has added. */
  onRepeat?(place: number): void;
}

/** A provider with its embedder: its methods take texts without their vectors. */
export interface Store extends WithoutVectors {
  /** Undefined: this is one store. */
  readonly mounts?: Mounts | undefined;
  /** The embedder of the vectors; undefined: there are no vectors. */
  readonly embedding?: EmbedderIdentity | undefined;
  /** Whether adds take keys: repeated adds with a key return the result of the first, also if several gateways run them at once. */
  readonly idempotent: boolean;
  /** Throws `invalid_request` if the key was used with another input. */
  add?(request: { readonly input: NewMemory } & Keyed, call: Call): Promise<Memory>;
  /**
   * Adds several memories; undefined inputs have no outcome. With a key, a memory that failed is tried again. Rejects if the
   * backend or the embedder failed and nothing was added. Present with `add`.
   */
  batch?(
    request: { readonly inputs: readonly (NewMemory | undefined)[] } & Keyed,
    call: Call,
  ): Promise<(BatchOutcome | undefined)[]>;
  update?(
    request: { readonly ref: Ref; readonly patch: MemoryPatch } & Limited,
    call: Call,
  ): Promise<Memory | undefined>;
  /** Several stores have no `writtenIn`: each of them is asked (`Mounts.parts`). */
  readonly versions?: (Omit<VersionStore, 'writtenIn'> & Partial<Pick<VersionStore, 'writtenIn'>>) | undefined;
  search?(query: TextQuery, call: Call): Promise<SearchHit[]>;
  /** What the embedding services of all stores were used for. Undefined: there are none, or this is a mounted store. */
  readonly embeddingUsage?: UsageReader | undefined;
  /** `Provider.erase`, then reads back what is left: in each store, of several. */
  erase?(request: EraseRequest, call: Call): Promise<StoreErasure[]>;
  /** `Provider.import`. Takes over the vectors of the same model, and computes the others. Rejections are outcomes. */
  import?(request: ImportRequest, call: Call): Promise<(boolean | OmpError)[]>;
  /** The vector of a query, for several searches. */
  queryVector?(query: Pick<TextQuery, 'text' | 'scope'>, call: Call): Promise<Vector>;
}

/** Every member of a store, so that a new one does not compile until it is decided what several stores make of it. */
export type StoreMembers = { [Member in keyof Required<Store>]: Store[Member] };

/** A store with an `add`. */
export type WritableStore = Store & Required<Pick<Store, 'add'>>;
