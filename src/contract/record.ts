/** Top-level keys that begin with `x-` belong to the caller and are stored with the record (Decision 6). */
export type ExtensionKey = `x-${string}`;
export type Extensions = Readonly<Record<ExtensionKey, unknown>>;

export interface Source {
  readonly app?: string;
  readonly type?: 'extracted' | 'explicit' | 'imported';
  readonly ref?: string;
}

/** The fields that a caller may set on creation, after validation: optional fields have their defaults. */
export interface NewMemory {
  readonly content: string;
  readonly user_id: string;
  readonly scope: string | null;
  readonly tags: readonly string[];
  readonly source: Source | null;
  /** 0 to 1. */
  readonly confidence: number | null;
  /** ISO 8601, UTC, milliseconds, `Z`: the strings sort by time. */
  readonly valid_from: string | null;
  readonly valid_to: string | null;
  readonly supersedes: readonly string[];
  readonly extensions: Extensions;
}

/** A stored record. Field names are the protocol's from wire to disk; only `extensions` is spread on the wire. */
export interface Memory extends NewMemory {
  readonly id: string;
  readonly created_at: string;
  readonly updated_at: string;
  /** Null: the provider stores no vector of this memory. */
  readonly embedding_model: string | null;
  /** Null: the provider does not track ingestion. */
  readonly status: 'queued' | 'indexing' | 'done' | 'failed' | null;
}

/**
 * Only the keys present are changed. `extensions` is merged key by key, and null removes one;
 * `tags` and `supersedes` replace the whole list (SPEC, PATCH).
 */
export type MemoryPatch = Partial<
  Pick<NewMemory, 'content' | 'scope' | 'tags' | 'confidence' | 'valid_to' | 'supersedes' | 'extensions'>
>;

/**
 * Globs over the scope; one of them must match. The empty glob matches the records without a scope, which match no other. Null:
 * every record.
 */
export type Within = readonly string[] | null;

/** The scopes that a query may see. */
export interface Visible {
  readonly within: Within;
  /** Scopes that are hidden with all below them, because other stores are mounted there (Decision 48). Undefined: none. */
  readonly outside?: readonly string[] | undefined;
}

/**
 * Identifies one record for a caller: a record of another user or outside the allowed scopes counts as absent. `users` and
 * `within` are required, since an optional filter would be forgotten. A provider applies them in the backend's query if it
 * can, so that update and delete act on the record that they checked.
 */
export interface Ref extends Visible {
  readonly id: string;
  /** The owner must be one of these; null: any user. */
  readonly users: readonly string[] | null;
  /**
   * An update or a delete throws `versionChanged` unless the `updated_at` of the record is one of these, checked in the same
   * step as the change. Other methods ignore them. Undefined: any. Given only if `etags`.
   */
  readonly versions?: readonly string[] | undefined;
}

/** Largest size of a record (`recordBytes`), unless a larger request size is configured: then twice that. */
export const MAX_RECORD_BYTES = 2 * 1024 * 1024;
/** Maximum characters of a scope, and of a glob over scopes. */
export const MAX_SCOPE_LENGTH = 512;
/** Maximum memories of one batch. */
export const MAX_BATCH_SIZE = 100;
/** Maximum `x-` keys of a record. */
export const MAX_EXTENSIONS = 256;
/** Deepest nesting of `x-` values: code that walks over them is recursive, in Postgres too. */
export const MAX_DEPTH = 32;
