import type {
  Call,
  Finding,
  Identity,
  MaintenanceContext,
  OmpErrorOptions,
  OptionsSchema,
  ProviderContext,
  ProviderSpec,
  Ref,
} from '#contract';

/*
 * What an adapter of a vector database writes. A vector database is here a collection of points; all that a memory needs
 * beyond points is made above it, once for every database (`define-collection.ts`).
 */

/** What a point holds under a field. A number is an integer below 2^53 or a fraction; a list may be empty. */
export type FieldValue = string | number | readonly string[];
export type PointFields = Readonly<Record<string, FieldValue>>;

/** One record of a collection. */
export interface Point {
  /** A text of 1 to 512 characters, or with `traits.ids: 'uuid'` a UUID in lower case. */
  readonly id: string;
  /** Every point has every field of `FIELDS`. */
  readonly fields: PointFields;
  /** Never all zero: some databases refuse that or leave it out of searches, so the kit marks such points and stores another vector. */
  readonly vector: Float32Array;
}

/** A point as it was asked for: what was not asked for may be missing. */
export interface FoundPoint {
  readonly id: string;
  readonly fields: PointFields;
  readonly vector?: Float32Array | undefined;
}

/** A point that `query` found, with the database's own measure (`traits.measure`). */
export interface Match extends FoundPoint {
  readonly measure: number;
}

/** What a read returns of points beside their ids. More may come. */
export interface Selection {
  /** Undefined: all. Empty: none. */
  readonly fields?: readonly string[] | undefined;
  readonly vector: boolean;
}

/** A field of every point. */
export interface Field {
  readonly name: string;
  readonly type: 'text' | 'number' | 'texts';
  /** Whether filters or orders name it: it needs an index, where the database has one for each field. */
  readonly filtered: boolean;
}

/**
 * All fields of points, flat. Texts that are not filtered may be long: megabytes. One point is no memory, and names the model of the vectors: its
 * `user_id` is empty, and its places are below 0.
 */
export const FIELDS = [
  { name: 'memory_id', type: 'text', filtered: true },
  { name: 'user_id', type: 'text', filtered: true },
  { name: 'content', type: 'text', filtered: false },
  /** Empty: the memory has no scope. */
  { name: 'scope', type: 'text', filtered: true },
  { name: 'tags', type: 'texts', filtered: true },
  /** Milliseconds since 1970, negative before. */
  { name: 'created', type: 'number', filtered: true },
  /** The same of the last change. It grows with every change, and so is the version of the point. */
  { name: 'updated', type: 'number', filtered: true },
  /** The place of the memory in the order of exports: a hash of 48 bits, evenly spread. */
  { name: 'place', type: 'number', filtered: true },
  /** The place of the user in the order of users: the same. */
  { name: 'user_place', type: 'number', filtered: true },
  /** The length of the content in UTF-8. */
  { name: 'bytes', type: 'number', filtered: true },
  /** Who wrote it: `key:…`, `via:…`, `trusted`. */
  { name: 'written', type: 'texts', filtered: true },
  /** A hash of the conversation; empty: the memory is in none. */
  { name: 'conversation', type: 'text', filtered: true },
  /** 1: the embedder found nothing in the text. Else 0. */
  { name: 'blank', type: 'number', filtered: false },
  /** All other fields of the memory, as JSON. */
  { name: 'rest', type: 'text', filtered: false },
] as const satisfies readonly Field[];

/** Which points a read wants. */
export type Filter =
  // The field, no list, is this.
  | { readonly op: 'equals'; readonly field: string; readonly value: string | number }
  // The text is one of these: 1 to 100.
  | { readonly op: 'anyOf'; readonly field: string; readonly values: readonly string[] }
  // The list has all of these: at least one, none twice.
  | { readonly op: 'allOf'; readonly field: string; readonly values: readonly string[] }
  // The number is within these bounds, both inclusive. At least one is given.
  | {
      readonly op: 'range';
      readonly field: string;
      readonly from?: number | undefined;
      readonly to?: number | undefined;
    }
  // The text begins with this, which is not empty.
  | { readonly op: 'prefix'; readonly field: string; readonly value: string }
  // All of these hold: at least two.
  | { readonly op: 'and'; readonly filters: readonly Filter[] }
  // This does not hold.
  | { readonly op: 'not'; readonly filter: Filter };

/** Filters that not every database can decide. Every one decides `equals`, `range` and `and`. */
export type OptionalFilter = 'anyOf' | 'allOf' | 'prefix' | 'not';

/**
 * How `query` measures: the cosine; 1 − the cosine; the inner product; 1 − the inner product; the length of the difference, or its square. The vectors have length 1
 * where it is none of the first two, and are otherwise as the embedder made them.
 */
export type Measure = 'cosine' | 'cosine distance' | 'product' | 'product distance' | 'distance' | 'squared distance';

/** Facts about a database. */
export interface Traits {
  readonly measure: Measure;
  /**
   * Whether `query` compares every point that matches the filter. False: its index is approximate, and may return fewer points than there
   * are; then the kit compares the vectors itself.
   */
  readonly exact: boolean;
  /**
   * What the database decides exactly, before it ranks and before it counts to `limit`. The kit never asks for another filter: it decides it
   * itself on what comes back, and asks for more until the page is full.
   */
  readonly filters: readonly OptionalFilter[];
  /**
   * What `scan` sorts by. `position`: by a number, then by `memory_id` in byte order, and goes on after a position. `number`: by a number, equal
   * ones in any order. `none`: it sorts nothing; lists then go by windows of time.
   */
  readonly order: 'position' | 'number' | 'none';
  /** `uuid`: points have UUIDs, which the kit makes of the ids of memories. */
  readonly ids: 'text' | 'uuid';
  /** Most points in one `upsert`, `fetch` or `remove`. */
  readonly max_batch: number;
  /** Most bytes in one `upsert`: fields as JSON, and four for each component of a vector. */
  readonly max_batch_bytes: number;
  /** Most bytes of the fields of one point as JSON; null: only `max_batch_bytes` limits them. */
  readonly max_point_bytes: number | null;
  /** Largest `limit` of `query`, `scan` and `page`, at least 1,000. */
  readonly max_limit: number;
  /** Fields that filters of `query` and of `scan` may name. Left out: all. */
  readonly filtered?: { readonly query: readonly string[]; readonly scan: readonly string[] };
  /** How many points a `scan` reads at least cost, if most of them may not match. Left out: as many as are wanted. */
  readonly scan_batch?: number;
  /**
   * Present if all points of a user are read by few requests a second. Then a list of a mapped collection keeps what its pages show, at most so many
   * points and bytes of contents, and a search takes what `query` ranks as it is: nothing is read beyond it.
   */
  readonly slow_pages?: { readonly points: number; readonly bytes: number };
  /** Whether points of other applications hold objects, and a dot in the name of a field goes into one; absent: a dot is a character of a name. */
  readonly nested?: true;
  /** Whether another application may give several points one id; absent: an id is of one point. */
  readonly shared_ids?: true;
}

/** What there is: for the start and `doctor`. */
export interface Description {
  /** Length of the vectors. */
  readonly dimensions: number;
  /** Whether it holds no point at all, whoever made it and whatever its fields are. */
  readonly empty: boolean;
  /** What is wrong with the measure, if another one than `traits.measure` was set. Undefined: nothing. */
  readonly mistake?: string | undefined;
  /** Names of fields that filters need an index for, and have none. */
  readonly unindexed?: readonly string[];
  /** The measure of a mapped collection. */
  readonly measure?: Measure | undefined;
  /** How many points a mapped collection has. */
  readonly points?: number | undefined;
  /** Names of its fields that have an index; undefined: the database has no such indexes. */
  readonly indexed?: readonly string[] | undefined;
}

export interface QueryRequest {
  /** As long as the collection's vectors; never all zero. */
  readonly vector: Float32Array;
  readonly filter: Filter;
  readonly limit: number;
  readonly select: Selection;
}

export interface ScanRequest {
  readonly filter: Filter;
  /** Undefined: any order. Given only as `traits.order` allows. */
  readonly order?: { readonly by: string; readonly descending: boolean } | undefined;
  /** Only what comes after this in `order`. Given only with `traits.order: 'position'`. */
  readonly after?: { readonly value: number; readonly memory_id: string } | undefined;
  readonly limit: number;
  readonly select: Selection;
}

export interface PageRequest {
  /** Undefined: all points, whatever their fields are. */
  readonly filter?: Filter | undefined;
  /** Only what comes after the page that had this `next`. */
  readonly after?: string | undefined;
  readonly limit: number;
  readonly select: Selection;
}

/** A change of a point of another application. */
export interface PointChange {
  readonly id: string;
  /** With `traits.nested`, names are paths into objects. */
  readonly fields: PointFields;
  /** Undefined: it stays. */
  readonly vector?: Float32Array | undefined;
  /** The point as it was read just now. */
  readonly stored: FoundPoint;
}

/**
 * What memories are made of. A write resolves once it is durable and `fetch`, `scan`, `query` and `count` show it, here and through other gateways. Errors of the client
 * library pass through: `CollectionSpec.failure` says what they mean. Every method stops when the call aborts, if the library can.
 */
export interface Points {
  readonly traits: Traits;
  /** Stores points, each in place of the one with its id, of which nothing stays. All or none, if the database can. No id comes twice. */
  upsert(points: readonly Point[], call: Call): Promise<void>;
  /** The points with these ids, in any order; those that are not there are left out. */
  fetch(ids: readonly string[], select: Selection, call: Call): Promise<readonly FoundPoint[]>;
  /** Removes the points with these ids, if they are there. */
  remove(ids: readonly string[], call: Call): Promise<void>;
  /**
   * The nearest points that match, nearest first, at most `limit`: fewer only if fewer match, or `traits.exact` is false. One with neither
   * `user_id` nor content was not read: the kit fetches it, and looks whether it matches.
   */
  query(request: QueryRequest, call: Call): Promise<readonly Match[]>;
  /** Points that match, at most `limit`: fewer only if fewer match. */
  scan(request: ScanRequest, call: Call): Promise<readonly FoundPoint[]>;
  /**
   * Replaces the point if the stored one still has this `updated`; false: it has not, or is gone. Checked in the same step as the write. Left out:
   * the database cannot, and concurrent changes through several gateways may overwrite each other.
   */
  replace?(point: Point, updated: number, call: Call): Promise<boolean>;
  /** The same for a removal. Present if `replace` is. */
  removeIf?(id: string, updated: number, call: Call): Promise<boolean>;
  /** How many points match, exactly. Left out: no users are listed, and `traits.exact` is true. */
  count?(filter: Filter, call: Call): Promise<number>;
  /** Finds the point of a memory, whatever its id is, unless it is certain that none of these users owns it. Left out: `fetch` does. */
  find?(ref: Pick<Ref, 'id' | 'users'>, call: Call): Promise<FoundPoint | undefined>;
  /** Stores what differs between `before` and the point: what others changed of the rest stays, and a removed point stays away. Left out: `replace`, or `upsert`. */
  patch?(point: Point, before: FoundPoint, call: Call): Promise<void>;
  /** Id and time of a new memory. Left out: a ULID and now. */
  identify?(user_id: string): Pick<Identity, 'id' | 'created_at'>;
  /** The part of the database that has the points of a user: one `upsert` gets points of one part. Left out: there is one. */
  partOf?(user_id: string): string;
  /** The size of a point as the database counts it, of its fields and in all. Left out: fields as JSON, and four bytes for each component. */
  sizeOf?(point: Point): { readonly fields: number; readonly whole: number };
  /**
   * Points that match, in an order that the database has by itself. `next`: where the rest begins; undefined: there is none. Present, with `change`, if
   * the adapter has presets; and if a `scan` cannot filter by `place`, for exports.
   */
  page?(
    request: PageRequest,
    call: Call,
  ): Promise<{ readonly points: readonly FoundPoint[]; readonly next: string | undefined }>;
}

/** One collection. */
export interface Collection extends Points {
  /** Undefined: there is no such collection. */
  describe(call: Call): Promise<Description | undefined>;
  /** Creates the collection with its indexes, and what is missing of them. Several gateways may do so at once. */
  prepare(wanted: { readonly dimensions: number; readonly fields: readonly Field[] }, call: Call): Promise<void>;
  count(filter: Filter, call: Call): Promise<number>;
  /** Some points that have this field. Throws if the database cannot filter by it. Left out: `page` shows both. */
  sample?(field: string, limit: number, call: Call): Promise<readonly FoundPoint[]>;
  /** Sets these fields of a point, and its vector, whatever else it holds stays; false: it is gone. */
  change?(change: PointChange, call: Call): Promise<boolean>;
  /** Throws if the database does not answer. */
  ping(call: Call): Promise<void>;
  close(): Promise<void>;
}

/** What an error of the client library means. */
export interface Failure extends Pick<OmpErrorOptions, 'retry' | 'down' | 'retryAfter'> {
  /** Default: `provider_error`. `payload_too_large` of a read: its answer would be; the kit then reads in parts. */
  readonly code?: 'provider_error' | 'rate_limited' | 'payload_too_large' | 'invalid_request' | undefined;
  /** Public, and tells what helps: no hosts, statements or contents. */
  readonly message: string;
  /** Whether the text of the error may be logged: it quotes neither the request nor a record. Default: only its name is. */
  readonly loggable?: boolean | undefined;
}

/** How a library fills collections of a database. Names of fields are as the adapter reads them. */
export interface Preset {
  /** As people call it. */
  readonly library: string;
  /** Whose collections were seen. */
  readonly versions?: string;
  readonly text?: string;
  readonly user?: string;
  readonly created?: string;
  readonly updated?: string;
  /** The field with a node of LlamaIndex as JSON, which has the text. */
  readonly node?: string;
  /** Fields that every point has, by which `doctor` knows the library. */
  readonly signs?: readonly string[];
  /** Why the gateway must not write into such a collection. Left out: it may. */
  readonly read_only?: string;
}

/** The presets of a database, by name. Those with more signs stand before those with fewer. */
export type Presets = Readonly<Record<string, Preset>>;

/** The options of a mapped collection. */
export interface MappingOptions {
  /** Unset: the collection is the gateway's. */
  readonly preset?: string | undefined;
  readonly text_field?: string | undefined;
  readonly user_field?: string | undefined;
  readonly scope_field?: string | undefined;
  readonly created_field?: string | undefined;
  readonly updated_field?: string | undefined;
  readonly tags_field?: string | undefined;
  readonly writable?: boolean | undefined;
}

export type CollectionContext = Pick<ProviderContext, 'data_dir' | 'log'>;

/** What `defineCollection` takes. */
export interface CollectionSpec<Options> {
  /** The version of the contract: a literal. */
  readonly specVersion: ProviderSpec<Options>['specVersion'];
  /** As in `defineProvider`. */
  readonly name: string;
  /** What people call the database, in messages. */
  readonly title: string;
  /** Checks the options. Left out: there are none. */
  readonly options?: OptionsSchema<Options>;
  /**
   * Of collections that other applications fill. The options are then `MappingOptions` too, and with a `preset` names of fields are those of the
   * application.
   */
  readonly presets?: Presets;
  /**
   * Loads the client library (`loadPackage`) and makes the client, without changes in the database. Throws a plain `Error` that says what to do.
   */
  open(options: Options, context: CollectionContext): Promise<Collection>;
  /** What an error of `open` or of a method means. Undefined: the database rejected the request, which a retry would not change. */
  failure(error: unknown): Failure | undefined;
  /** What `doctor` shows beside what the kit finds by `describe`. */
  diagnose?(collection: Collection, context: MaintenanceContext, call: Call): Promise<Finding[]>;
}
